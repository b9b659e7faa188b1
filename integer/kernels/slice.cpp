#include "integer/kernels/slice.h"

#include <cstring>

#include "core/parallel.h"

namespace miniqat::integer {

SliceStep::SliceStep(const Slice& slice, const Shape& from, const Shape& to)
    : input_size_(from.elements()),
      output_size_(to.elements()),
      row_(to.channels()),
      step_(slice.steps.empty() ? 1 : slice.steps.back()) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(from.rank()), 1);
  for (int axis = from.rank() - 2; axis >= 0; --axis) strides[axis] = strides[axis + 1] * from[axis + 1];
  std::int64_t first = 0;
  for (int axis = 0; axis < from.rank(); ++axis) first += slice.starts[axis] * strides[axis];
  places_.push_back(first);
  // Every axis but the last repeats what lies within it.
  for (int axis = from.rank() - 2; axis >= 0; --axis) {
    const std::size_t within = places_.size();
    for (std::int64_t i = 1; i < to[axis]; ++i)
      for (std::size_t k = 0; k < within; ++k) places_.push_back(places_[k] + i * slice.steps[axis] * strides[axis]);
  }
}

void SliceStep::run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const {
  parallel_for(n, 16 * kPointwiseGrain / output_size_ + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      const std::uint8_t* from = inputs[0] + image * input_size_;
      std::uint8_t* to = output + image * output_size_;
      for (const std::int64_t place : places_) {
        if (step_ == 1)
          std::memcpy(to, from + place, row_);
        else
          for (std::int64_t i = 0; i < row_; ++i) to[i] = from[place + i * step_];
        to += row_;
      }
    }
  });
}

}  // namespace miniqat::integer
