#pragma once

#include <vector>

#include "core/shape.h"
#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// Rows of the last axis, or parts of rows, moved.
class SliceStep : public Step {
 public:
  /// `from` and `to` are shapes of an example.
  SliceStep(const Slice& slice, const Shape& from, const Shape& to);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  std::int64_t input_size_, output_size_;
  /// The output's innermost rows, one behind another: where each begins in the input.
  std::vector<std::int64_t> places_;
  std::int64_t row_;
  /// Between neighbours of a row.
  std::int64_t step_;
};

}  // namespace miniqat::integer
