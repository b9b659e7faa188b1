// The hint must say: the largest number of all batches
#include <algorithm>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  return {{std::min(stored.min, batch.min), std::max(stored.max, batch.max)}, step > delay};
}

}  // namespace lab05
