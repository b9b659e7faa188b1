#include "integer/ops/rescale.h"

#include "integer/kernels/byte_table.h"
#include "integer/ops/operation_check.h"

namespace miniqat::integer {

void Rescale::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_same_shapes();
  rules.require_multiplier(multiplier);
}

std::unique_ptr<Step> Rescale::make_step(const Model& model, const Operation& operation) const {
  const TensorInfo &x = model.input_of(operation), &y = model.output_of(operation);
  return std::make_unique<TableStep>(ByteTable(x.grid, multiplier, y.grid, operation.clamp), y.shape.elements());
}

}  // namespace miniqat::integer
