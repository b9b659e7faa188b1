// The hint must say: You leave the stored range as it is
#include "labs/05-observed-ranges/lab.h"

namespace lab05 {

Step training_step(Range stored, Range /*batch*/, int step, double /*decay*/, int delay) {
  return {stored, step > delay};
}

}  // namespace lab05
