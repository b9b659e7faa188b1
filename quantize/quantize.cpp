#include "quantize/quantize.h"

#include "core/graph/registry.h"

namespace miniqat::quantize {

void register_ops() {
  register_op<FakeQuant>();
  register_op<BatchNormFold>();
  register_op<BatchNormCorrection>();
  register_op<BatchNormScale>();
}

}  // namespace miniqat::quantize
