// The hint must say: You keep the range of the last batch
#include <cmath>

#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range batch, int step, double decay, int delay) { return {batch, step > delay}; }

}  // namespace lab05
