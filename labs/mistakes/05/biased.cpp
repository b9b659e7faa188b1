// The hint must say: The first steps of your average
#include <cmath>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  return {{stored.min * decay + batch.min * (1 - decay), stored.max * decay + batch.max * (1 - decay)}, step > delay};
}

}  // namespace lab05
