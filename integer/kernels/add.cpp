#include "integer/kernels/add.h"

#include "core/kernels/instruction_set.h"
#include "core/parallel.h"

namespace miniqat::integer {
namespace {

struct ScaledSum {
  std::int32_t mantissas[2];
  std::int32_t rounding, shift;
};

#define MINIQAT_LOOPS "integer/kernels/add_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

AddStep::AddStep(const Model& model, const Operation& operation)
    : pair_(model, operation), multipliers_(std::get<Add>(operation.action).multipliers) {}

void AddStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  const auto& [mantissas, shift] = multipliers_;
  const ScaledSum scaled{
      .mantissas = {mantissas[0], mantissas[1]}, .rounding = std::int32_t{1} << (shift - 1), .shift = shift};
  const auto add = MINIQAT_PICK(add_scaled);
  parallel_for(n * pair_.size, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    add(inputs[0] + begin, inputs[1] + begin, end - begin, pair_, scaled, output + begin);
  });
}

}  // namespace miniqat::integer
