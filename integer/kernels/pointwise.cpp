#include "integer/kernels/pointwise.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/parallel.h"

namespace miniqat::integer {
namespace {

struct ScaledSum {
  std::int32_t mantissas[2];
  std::int32_t rounding, shift;
};

#define MINIQAT_LOOPS "integer/kernels/pointwise_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

void look_up(const ByteTable& table, const std::uint8_t* x, std::int64_t n, std::uint8_t* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

PairOfInputs::PairOfInputs(const Model& model, const Operation& operation)
    : size(model.output_of(operation).shape.elements()),
      zero_points{model.input_of(operation, 0).grid.zero_point, model.input_of(operation, 1).grid.zero_point},
      zero_point(model.output_of(operation).grid.zero_point),
      clamp(operation.clamp) {}

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

ConcatStep::ConcatStep(const Model& model, const Operation& operation, std::span<const Multiplier> multipliers,
                       int axis) {
  const TensorInfo& output = model.output_of(operation);
  std::int64_t inner = 1;
  for (int i = 0; i < output.shape.rank(); ++i) (i < axis ? blocks_ : inner) *= i == axis ? 1 : output.shape[i];
  for (std::size_t k = 0; k < operation.inputs.size(); ++k) {
    const TensorInfo& input = model.input_of(operation, k);
    const std::int64_t extent = input.shape.rank() == 0 ? 1 : input.shape[axis];
    Part part{.size = extent * inner, .first = row_, .table = {}, .copies = true};
    for (int x = 0; x < 256; ++x) {
      part.table[x] = requantize(x - input.grid.zero_point, multipliers[k], output.grid.zero_point, operation.clamp);
      part.copies = part.copies && part.table[x] == x;
    }
    row_ += part.size;
    parts_.push_back(part);
  }
}

void ConcatStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  const auto run_part = [&](const Part& part, const std::uint8_t* x, std::int64_t size, std::uint8_t* y) {
    if (part.copies)
      std::memcpy(y, x, size);
    else
      look_up(part.table, x, size, y);
  };
  if (parts_.size() == 1) {
    parallel_for(n * blocks_ * row_, 4 * kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      run_part(parts_[0], inputs[0] + begin, end - begin, output + begin);
    });
    return;
  }
  parallel_for(n * blocks_, 4 * kPointwiseGrain / row_ + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block)
      for (std::size_t k = 0; k < parts_.size(); ++k)
        run_part(parts_[k], inputs[k] + block * parts_[k].size, parts_[k].size,
                 output + block * row_ + parts_[k].first);
  });
}

PadStep::PadStep(const Model& model, const Operation& operation)
    : input_size_(model.input_of(operation).shape.elements()),
      output_size_(model.output_of(operation).shape.elements()),
      row_(model.input_of(operation).shape.channels()),
      zero_point_(static_cast<std::uint8_t>(model.output_of(operation).grid.zero_point)) {
  const Shape& from = model.input_of(operation).shape;
  const Shape& to = model.output_of(operation).shape;
  const auto& paddings = std::get<Pad>(operation.action).paddings;
  for (std::int64_t i = 0; i < input_size_; i += row_) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (int axis = from.rank() - 1; axis >= 0; --axis) {
      place += (rest % from[axis] + paddings[axis][0]) * stride;
      rest /= from[axis];
      stride *= to[axis];
    }
    places_.push_back(place);
  }
}

void PadStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  parallel_for(n, 16 * kPointwiseGrain / output_size_ + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      const std::uint8_t* from = inputs[0] + image * input_size_;
      std::uint8_t* to = output + image * output_size_;
      std::memset(to, zero_point_, output_size_);
      for (const std::int64_t place : places_) {
        std::memcpy(to + place, from, row_);
        from += row_;
      }
    }
  });
}

void CopyStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  std::memcpy(output, inputs[0], n * size_);
}

}  // namespace miniqat::integer
