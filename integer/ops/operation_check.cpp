#include "integer/ops/operation_check.h"

namespace miniqat::integer {

void OperationCheck::run() const {
  const std::int32_t last = output().grid.quant_max();
  require(clamp().min >= 0 && clamp().min <= clamp().max && clamp().max <= last, "its clamp [", clamp().min, ", ",
          clamp().max, "] is not within [0, ", last, "]");
  std::visit([this](const auto& action) { action.check(*this); }, operation_.action);
}

void OperationCheck::require_same_shapes() const {
  for (std::size_t i = 0; i < inputs(); ++i)
    require(input(i).shape == output().shape, "has inputs and output of one shape, but ", input(i).shape, " and ",
            output().shape);
}

Shape OperationCheck::shape_of(const std::vector<std::int64_t>& extents) const {
  try {
    return Shape(extents);
  } catch (const Error& error) {
    fail("integer model: ", who(), " makes too much: ", error.what());
  }
}

void OperationCheck::require_output_shape(const std::vector<std::int64_t>& extents) const {
  const Shape shape = shape_of(extents);
  require(output().shape == shape, "makes ", shape, ", its output is ", output().shape);
}

void OperationCheck::require_shift(std::int32_t shift, std::int32_t largest) const {
  require(shift >= 1 && shift <= largest, "has a multiplier's shift of ", shift, ", not in 1..", largest);
}

void OperationCheck::require_multiplier(const Multiplier& multiplier) const {
  require(multiplier.mantissa == 0 || multiplier.mantissa >= 1 << 30, "has a multiplier's mantissa of ",
          multiplier.mantissa, ", not 0 and not in [2^30, 2^31)");
  require_shift(multiplier.shift, Multiplier::kLargestShift);
}

void OperationCheck::require_axis(const WindowAxis& axis) const {
  for (const std::int64_t extent : {axis.input, axis.window, axis.stride, axis.dilation, axis.output})
    require(extent >= 1 && extent <= kLargestExtent, "has a window whose extents are not in 1..", kLargestExtent);
  require(axis.pad_before >= 0 && axis.pad_before <= kLargestExtent && axis.pad_after >= 0 &&
              axis.pad_after <= kLargestExtent,
          "has a padding out of 0..", kLargestExtent);
  const std::int64_t reach = axis.source(axis.output - 1, axis.window - 1);
  require(reach < axis.input + axis.pad_after, "has a window that reaches to ", reach, ", behind its padding");
}

void OperationCheck::require_window(const Window2d& window) const {
  require(input().shape.rank() == 3, "takes an image [h, w, c], not ", input().shape);
  require_axis(window.rows);
  require_axis(window.columns);
  require(window.rows.input == input().shape[0] && window.columns.input == input().shape[1], "has a window over [",
          window.rows.input, ", ", window.columns.input, "], its input is ", input().shape);
}

std::int64_t OperationCheck::farthest() const {
  const Grid& grid = input().grid;
  return std::max(grid.zero_point, grid.quant_max() - grid.zero_point);
}

}  // namespace miniqat::integer
