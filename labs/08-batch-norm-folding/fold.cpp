#include "labs/08-batch-norm-folding/lab.h"

namespace lab08 {

// One layer in the place of a layer and its batch norm. Check it with ./labs/check 08
Layer fold(const Layer& layer, const BatchNorm& norm) {
  Layer folded;
  // Your code here: folded.weights = ...; folded.bias = ...;
  return folded;
}

}  // namespace lab08
