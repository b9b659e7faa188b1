#include "integer/kernels/mul.h"

#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/parallel.h"

namespace miniqat::integer {
namespace {

#define MINIQAT_LOOPS "integer/kernels/mul_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

MulStep::MulStep(const Model& model, const Operation& operation)
    : pair_(model, operation), factors_(requantization_factors(std::get<Mul>(operation.action).multiplier)) {
  const Shape& a = model.input_of(operation, 0).shape;
  const Shape& b = model.input_of(operation, 1).shape;
  sizes_ = {a.elements(), b.elements()};
  if (a == b) return;
  const StretchedPair stretched = stretched_pair(a, b);
  swaps_ = stretched.strides.back().a == 0;
  by_one_ = swaps_ || stretched.strides.back().b == 0;
  row_ = stretched.row();
  rows_ = stretched.rows();
  if (!swaps_) return;
  std::swap(sizes_[0], sizes_[1]);
  std::swap(pair_.zero_points[0], pair_.zero_points[1]);
  for (StretchedPair::Places& place : rows_) std::swap(place.a, place.b);
}

void MulStep::run_stretched(std::int64_t n, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* output) const {
  const auto multiply = by_one_ ? MINIQAT_PICK(multiply_scaled_by_one) : MINIQAT_PICK(multiply_scaled);
  const auto rows = static_cast<std::int64_t>(rows_.size());
  parallel_for(n * rows, 4 * kPointwiseGrain / row_ + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const StretchedPair::Places& place = rows_[i % rows];
      multiply(a + i / rows * sizes_[0] + place.a, b + i / rows * sizes_[1] + place.b, row_, pair_, factors_,
               output + i * row_);
    }
  });
}

void MulStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  if (!rows_.empty()) return run_stretched(n, inputs[swaps_ ? 1 : 0], inputs[swaps_ ? 0 : 1], output);
  const auto multiply = MINIQAT_PICK(multiply_scaled);
  parallel_for(n * pair_.size, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    multiply(inputs[0] + begin, inputs[1] + begin, end - begin, pair_, factors_, output + begin);
  });
}

}  // namespace miniqat::integer
