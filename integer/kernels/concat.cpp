#include "integer/kernels/concat.h"

#include "core/parallel.h"

namespace miniqat::integer {

ConcatStep::ConcatStep(const Model& model, const Operation& operation) {
  const auto& [axis, multipliers] = std::get<Concat>(operation.action);
  const TensorInfo& output = model.output_of(operation);
  std::int64_t inner = 1;
  for (int i = 0; i < output.shape.rank(); ++i) (i < axis ? blocks_ : inner) *= i == axis ? 1 : output.shape[i];
  for (std::size_t k = 0; k < operation.inputs.size(); ++k) {
    const TensorInfo& input = model.input_of(operation, k);
    parts_.push_back({.size = input.shape[axis] * inner,
                      .first = row_,
                      .table = RescaleTable(input.grid, multipliers[k], output.grid, operation.clamp)});
    row_ += parts_.back().size;
  }
}

void ConcatStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  parallel_for(n * blocks_, 4 * kPointwiseGrain / row_ + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block)
      for (std::size_t k = 0; k < parts_.size(); ++k)
        parts_[k].table.run(inputs[k] + block * parts_[k].size, parts_[k].size,
                            output + block * row_ + parts_[k].first);
  });
}

}  // namespace miniqat::integer
