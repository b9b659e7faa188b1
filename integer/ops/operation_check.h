#pragma once

#include <algorithm>
#include <string>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "integer/model.h"

namespace miniqat::integer {

/// Extents of windows and paddings, and steps.
inline constexpr std::int64_t kLargestExtent = 65536;

/// Messages quote names, and whoever reads the model may print them.
inline bool is_plain_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return c >= ' ' && c < 127; });
}

/// What an action checks of its operation. Every failure is an Error that names the operation.
class OperationCheck {
 public:
  OperationCheck(const Model& model, const Operation& operation) : model_(model), operation_(operation) {}

  const TensorInfo& input(std::size_t i = 0) const { return model_.input_of(operation_, i); }
  const TensorInfo& output() const { return model_.output_of(operation_); }
  const Clamp& clamp() const { return operation_.clamp; }
  std::size_t inputs() const { return operation_.inputs.size(); }
  /// [Add "block1/Add"]
  std::string who() const { return concat("[", type_name(operation_.action), " ", quote(operation_.name), "]"); }

  template <class... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (!holds) fail("integer model: ", who(), " ", parts...);
  }
  /// The clamp lies on the output's grid, and the action's own rules hold.
  void run() const;

  void require_inputs(std::size_t count) const {
    require(inputs() == count, "takes ", counted(count, "input"), ", not ", inputs());
  }
  void require_same_shapes() const;
  void require_one_grid() const {
    require(input().grid == output().grid, "keeps its input's scale, zero point and bits");
  }
  Shape shape_of(const std::vector<std::int64_t>& extents) const;
  void require_output_shape(const std::vector<std::int64_t>& extents) const;
  void require_shift(std::int32_t shift, std::int32_t largest) const;
  void require_multiplier(const Multiplier& multiplier) const;
  /// The window's extents are known ones and fit the input, an image.
  void require_window(const Window2d& window) const;
  /// How far from its zero point an integer of the input may be.
  std::int64_t farthest() const;

 private:
  void require_axis(const WindowAxis& axis) const;

  const Model& model_;
  const Operation& operation_;
};

}  // namespace miniqat::integer
