// The hint must say: You take the mean of all batches
#include <cmath>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  const double take = 1.0 / step;
  return {{stored.min + (batch.min - stored.min) * take, stored.max + (batch.max - stored.max) * take}, step > delay};
}

}  // namespace lab05
