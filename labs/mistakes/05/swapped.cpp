// The hint must say: The decay belongs to the old range
#include <cmath>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  const double unbias = 1 - std::pow(decay, step);
  const double old = (1 - decay) / unbias;
  return {{stored.min * old + batch.min * (1 - old), stored.max * old + batch.max * (1 - old)}, step > delay};
}

}  // namespace lab05
