#include "integer/ops/pair.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/threads/parallel.h"
#include "integer/kernels/requantization.h"
#include "integer/ops/operation_check.h"

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

std::vector<StretchedPair::Offsets> StretchedPair::rows() const {
  std::vector<Offsets> offsets = {{}};
  for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
    std::vector<Offsets> finer;
    for (const Offsets& offset : offsets)
      for (std::int64_t i = 0; i < extents[axis]; ++i)
        finer.push_back({offset.a + i * strides[axis].a, offset.b + i * strides[axis].b});
    offsets = std::move(finer);
  }
  return offsets;
}

StretchedPair stretched_pair(const Shape& a, const Shape& b) {
  StretchedPair pair;
  std::int64_t inner_a = 1, inner_b = 1;
  for (int axis = a.rank() - 1; axis >= 0; --axis) {
    const std::int64_t extent = std::max(a[axis], b[axis]);
    if (extent == 1) continue;
    const StretchedPair::Offsets stride = {a[axis] == 1 ? 0 : inner_a, b[axis] == 1 ? 0 : inner_b};
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

}  // namespace

Step Add::make_step(const Model& model, const Operation& operation) const {
  const ScaledSum sum = {.mantissas = {multipliers.mantissas[0], multipliers.mantissas[1]},
                         .rounding = std::int32_t{1} << (multipliers.shift - 1),
                         .shift = multipliers.shift};
  return [pair = PairOfInputs(model, operation), sum](std::int64_t n, StepInputs inputs, std::uint8_t* output) {
    const auto add = MINIQAT_PICK(add_scaled);
    parallel_for(n * pair.size, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      add(inputs[0] + begin, inputs[1] + begin, end - begin, pair, sum, output + begin);
    });
  };
}

Step Mul::make_step(const Model& model, const Operation& operation) const {
  PairOfInputs pair(model, operation);
  const RequantizationFactors factors = requantization_factors(multiplier);
  const Shape &a = model.input_of(operation, 0).shape, &b = model.input_of(operation, 1).shape;
  if (a == b)
    return [pair, factors](std::int64_t n, StepInputs inputs, std::uint8_t* output) {
      const auto multiply = MINIQAT_PICK(multiply_scaled);
      parallel_for(n * pair.size, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        multiply(inputs[0] + begin, inputs[1] + begin, end - begin, pair, factors, output + begin);
      });
    };
  // The elements of an example in each operand, and where rows begin.
  std::array<std::int64_t, 2> sizes = {a.elements(), b.elements()};
  const StretchedPair stretched = stretched_pair(a, b);
  std::vector<StretchedPair::Offsets> offsets = stretched.rows();
  // Whether the first operand is the one that is stretched along rows: then the operands change sides.
  const bool swaps = stretched.strides.back().a == 0;
  const bool by_one = swaps || stretched.strides.back().b == 0;
  if (swaps) {
    std::swap(sizes[0], sizes[1]);
    std::swap(pair.zero_points[0], pair.zero_points[1]);
    for (StretchedPair::Offsets& offset : offsets) std::swap(offset.a, offset.b);
  }
  return [pair, factors, sizes, swaps, by_one, row = stretched.row(), offsets = std::move(offsets)](
             std::int64_t n, StepInputs inputs, std::uint8_t* output) {
    const std::uint8_t *a = inputs[swaps ? 1 : 0], *b = inputs[swaps ? 0 : 1];
    const auto multiply = by_one ? MINIQAT_PICK(multiply_scaled_by_one) : MINIQAT_PICK(multiply_scaled);
    const std::int64_t rows = std::ssize(offsets);
    parallel_for(n * rows, 4 * kPointwiseGrain / row + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const StretchedPair::Offsets& offset = offsets[i % rows];
        multiply(a + i / rows * sizes[0] + offset.a, b + i / rows * sizes[1] + offset.b, row, pair, factors,
                 output + i * row);
      }
    });
  };
}

}  // namespace miniqat::integer
