#include "integer/ops/pair.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/threads/parallel.h"
#include "integer/kernels/requantization.h"
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

void Mul::check(const OperationCheck& rules) const {
  rules.require_inputs(2);
  const Shape &a = rules.input(0).shape, &b = rules.input(1).shape, &y = rules.output().shape;
  bool fits = a.rank() == b.rank() && a.rank() == y.rank();
  for (int axis = 0; fits && axis < a.rank(); ++axis)
    fits = (a[axis] == b[axis] || a[axis] == 1 || b[axis] == 1) && y[axis] == std::max(a[axis], b[axis]);
  rules.require(fits, "has inputs ", a, " and ", b, ", which cannot be stretched to its output ", y);
  rules.require_multiplier(multiplier);
}

std::vector<StretchedPair::Places> StretchedPair::rows() const {
  std::vector<Places> places = {{}};
  for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
    std::vector<Places> finer;
    for (const Places& place : places)
      for (std::int64_t i = 0; i < extents[axis]; ++i)
        finer.push_back({place.a + i * strides[axis].a, place.b + i * strides[axis].b});
    places = std::move(finer);
  }
  return places;
}

StretchedPair stretched_pair(const Shape& a, const Shape& b) {
  StretchedPair pair;
  std::int64_t inner_a = 1, inner_b = 1;
  for (int axis = a.rank() - 1; axis >= 0; --axis) {
    const std::int64_t extent = std::max(a[axis], b[axis]);
    if (extent == 1) continue;
    const StretchedPair::Places stride = {a[axis] == 1 ? 0 : inner_a, b[axis] == 1 ? 0 : inner_b};
    inner_a *= a[axis];
    inner_b *= b[axis];
    const bool goes_on = !pair.extents.empty() && (stride.a == 0) == (pair.strides.back().a == 0) &&
                         (stride.b == 0) == (pair.strides.back().b == 0);
    if (goes_on) {
      pair.extents.back() *= extent;
    } else {
      pair.extents.push_back(extent);
      pair.strides.push_back(stride);
    }
  }
  if (pair.extents.empty()) return {.extents = {1}, .strides = {{1, 1}}};
  std::ranges::reverse(pair.extents);
  std::ranges::reverse(pair.strides);
  return pair;
}

namespace {

/// The grids of two inputs and of the output.
struct PairOfInputs {
  PairOfInputs(const Model& model, const Operation& operation)
      : size(model.output_of(operation).shape.elements()),
        zero_points{model.input_of(operation, 0).grid.zero_point, model.input_of(operation, 1).grid.zero_point},
        zero_point(model.output_of(operation).grid.zero_point),
        clamp(operation.clamp) {}

  /// Elements of an example, of the output.
  std::int64_t size;
  std::array<std::int32_t, 2> zero_points;
  /// The output's.
  std::int32_t zero_point;
  Clamp clamp;
};

struct ScaledSum {
  std::int32_t mantissas[2];
  std::int32_t rounding, shift;
};

#define MINIQAT_LOOPS "integer/ops/pair_loops.h"
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

class MulStep : public Step {
 public:
  MulStep(const Model& model, const Operation& operation, const Multiplier& multiplier)
      : pair_(model, operation), factors_(requantization_factors(multiplier)) {
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

  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override {
    if (!rows_.empty()) return run_stretched(n, inputs[swaps_ ? 1 : 0], inputs[swaps_ ? 0 : 1], output);
    const auto multiply = MINIQAT_PICK(multiply_scaled);
    parallel_for(n * pair_.size, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      multiply(inputs[0] + begin, inputs[1] + begin, end - begin, pair_, factors_, output + begin);
    });
  }

 private:
  void run_stretched(std::int64_t n, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* output) const {
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

  PairOfInputs pair_;
  RequantizationFactors factors_;
  /// For inputs that differ in shape: the length of a row, where rows begin, and the elements of an example in each
  /// operand. `swaps_`: the first operand is the one that is stretched along rows, and both have changed places.
  /// `by_one_`: one of them is stretched along rows.
  std::int64_t row_ = 0;
  std::vector<StretchedPair::Places> rows_;
  std::array<std::int64_t, 2> sizes_;
  bool swaps_ = false, by_one_ = false;
};

}  // namespace

std::unique_ptr<Step> Add::make_step(const Model& model, const Operation& operation) const {
  return std::make_unique<AddStep>(model, operation, multipliers);
}

std::unique_ptr<Step> Mul::make_step(const Model& model, const Operation& operation) const {
  return std::make_unique<MulStep>(model, operation, multiplier);
}

}  // namespace miniqat::integer
