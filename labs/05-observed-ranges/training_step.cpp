#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

// The range after training step number `step` (1 is the first), and whether the step quantizes. Check it with
// ./labs/check 05
Step training_step(Range stored, Range batch, int step, double decay, int delay) {
  Step result;
  // Your code here: result.range = ...; result.quantizes = ...;
  return result;
}

}  // namespace lab05
