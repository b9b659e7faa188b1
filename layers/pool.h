#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"
#include "core/window.h"

namespace miniqat::layers {

/// Each pair is [h, w].
struct PoolAttributes {
  std::array<std::int64_t, 2> window = {2, 2};
  /// [0, 0], the default, stands for strides equal to the window.
  std::array<std::int64_t, 2> strides = {0, 0};
  /// Unlike convolutions, pools default to VALID: no padding.
  Padding padding = Padding::kValid;

  void visit(AttributeVisitor& visitor);
};

/// The largest value in every window: x [n, h, w, c] float32 to [n, oh, ow, c]. Padding never wins. Of equal values the
/// first in the window's row-major order gets the gradient. A NaN in the window gives NaN.
class MaxPool final : public Op, public SavesForBackward {
 public:
  MaxPool() = default;
  explicit MaxPool(const PoolAttributes& attributes) : attributes_(attributes) {}
  const PoolAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "MaxPool"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<MaxPool>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  PoolAttributes attributes_;
};

/// The mean of every window: x [n, h, w, c] float32 to [n, oh, ow, c]. Padding does not count, neither as a value nor
/// in the divisor.
class AvgPool final : public Op {
 public:
  AvgPool() = default;
  explicit AvgPool(const PoolAttributes& attributes) : attributes_(attributes) {}
  const PoolAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "AvgPool"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<AvgPool>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  PoolAttributes attributes_;
};

/// The window that a pool lays over images [n, h, w, c]. Throws what slide() throws.
Window2d window_of(const Shape& images, const PoolAttributes& attributes);

Output max_pool(Graph& graph, const std::string& name, Output x, const PoolAttributes& attributes = {});
Output avg_pool(Graph& graph, const std::string& name, Output x, const PoolAttributes& attributes = {});

}  // namespace miniqat::layers
