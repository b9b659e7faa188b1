// The hint must say: Your weight grows
#include <cmath>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  const double take = 1 - std::pow(decay, step);
  return {{stored.min + (batch.min - stored.min) * take, stored.max + (batch.max - stored.max) * take}, step > delay};
}

}  // namespace lab05
