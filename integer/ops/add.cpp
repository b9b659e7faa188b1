#include "integer/ops/add.h"

#include "core/kernels/instruction_set.h"
#include "core/threads/parallel.h"
#include "integer/kernels/pair_of_inputs.h"
#include "integer/ops/operation_check.h"
#include "integer/step.h"

namespace miniqat::integer {

void Add::check(const OperationCheck& rules) const {
  rules.require_inputs(2);
  rules.require_same_shapes();
  rules.require(multipliers.mantissas.size() == 2, "takes two multipliers");
  for (const std::int32_t mantissa : multipliers.mantissas)
    rules.require(mantissa >= 0 && mantissa <= SharedMultipliers::kLargestMantissa, "has a multiplier's mantissa of ",
                  mantissa, ", not in [0, 2^21]");
  rules.require_shift(multipliers.shift, SharedMultipliers::kLargestShift);
}

namespace {

struct ScaledSum {
  std::int32_t mantissas[2];
  std::int32_t rounding, shift;
};

#define MINIQAT_LOOPS "integer/ops/add_loops.h"
#include "core/kernels/per_instruction_set.h"

class AddStep : public Step {
 public:
  AddStep(const Model& model, const Operation& operation, const SharedMultipliers& multipliers)
      : pair_(model, operation),
        sum_{.mantissas = {multipliers.mantissas[0], multipliers.mantissas[1]},
             .rounding = std::int32_t{1} << (multipliers.shift - 1),
             .shift = multipliers.shift} {}

  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override {
    const auto add = MINIQAT_PICK(add_scaled);
    parallel_for(n * pair_.size, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      add(inputs[0] + begin, inputs[1] + begin, end - begin, pair_, sum_, output + begin);
    });
  }

 private:
  PairOfInputs pair_;
  ScaledSum sum_;
};

}  // namespace

std::unique_ptr<Step> Add::make_step(const Model& model, const Operation& operation) const {
  return std::make_unique<AddStep>(model, operation, multipliers);
}

}  // namespace miniqat::integer
