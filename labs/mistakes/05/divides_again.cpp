// The hint must say: in each step again
#include <cmath>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  const double sum = 1 - std::pow(decay, step);
  return {{(stored.min * decay + batch.min * (1 - decay)) / sum, (stored.max * decay + batch.max * (1 - decay)) / sum},
          step > delay};
}

}  // namespace lab05
