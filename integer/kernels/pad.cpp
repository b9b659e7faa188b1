#include "integer/kernels/pad.h"

#include <cstring>

#include "core/parallel.h"

namespace miniqat::integer {

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

}  // namespace miniqat::integer
