#include "integer/ops/lookup.h"

#include "core/threads/parallel.h"
#include "integer/kernels/byte_table.h"
#include "integer/ops/operation_check.h"

namespace miniqat::integer {
namespace {

/// `elements` of an example.
Step table_step(const ByteTable& table, std::int64_t elements) {
  return [table, elements](std::int64_t n, StepInputs inputs, std::uint8_t* output) {
    parallel_for(n * elements, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      table.run(inputs[0] + begin, end - begin, output + begin);
    });
  };
}

}  // namespace

void Lookup::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_same_shapes();
  rules.require(is_plain_name(function), "has a function whose name is empty or holds more than printable ASCII");
  const auto integers = static_cast<std::size_t>(rules.input().grid.quant_max()) + 1;
  rules.require(table.size() == integers, "has a table of ", table.size(), " for ", counted(integers, "integer"));
  for (const std::uint8_t y : table)
    rules.require(y >= rules.clamp().min && y <= rules.clamp().max, "has a table with ", int{y},
                  ", which is beyond its clamp");
}

Step Lookup::make_step(const Model& model, const Operation& operation) const {
  return table_step(ByteTable(table), model.input_of(operation).shape.elements());
}

void Rescale::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_same_shapes();
  rules.require_multiplier(multiplier);
}

Step Rescale::make_step(const Model& model, const Operation& operation) const {
  const TensorInfo &x = model.input_of(operation), &y = model.output_of(operation);
  return table_step(ByteTable(x.grid, multiplier, y.grid, operation.clamp), y.shape.elements());
}

}  // namespace miniqat::integer
