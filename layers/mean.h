#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

struct MeanAttributes {
  /// Which axes to average over; negative ones count from the end; none stands for all.
  std::vector<std::int64_t> axes;
  /// Keep the axes with extent 1 instead of dropping them.
  bool keep_dims = false;

  void visit(AttributeVisitor& visitor);
};

/// The mean of x, float32, over some of its axes: [n, h, w, c] over {1, 2} gives [n, c]. Throws Error while building
/// for axes that x does not have or that are named twice, and for a mean over no elements.
class Mean final : public Op {
 public:
  Mean() = default;
  explicit Mean(const MeanAttributes& attributes) : attributes_(attributes) {}
  const MeanAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "Mean"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<Mean>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  MeanAttributes attributes_;
};

Output mean(Graph& graph, const std::string& name, Output x, const MeanAttributes& attributes = {});

}  // namespace miniqat::layers
