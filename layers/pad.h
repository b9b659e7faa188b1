#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace miniqat::layers {

struct PadAttributes {
  /// [before, after] for every axis of the input, none negative.
  std::vector<std::array<std::int64_t, 2>> paddings;

  void visit(AttributeVisitor& visitor);
};

/// Surrounds x, float32, with zeros: extent e of an axis becomes before + e + after.
class Pad final : public Op {
 public:
  Pad() = default;
  explicit Pad(const PadAttributes& attributes) : attributes_(attributes) {}
  const PadAttributes& attributes() const { return attributes_; }

  std::string_view type() const override { return "Pad"; }
  void visit(AttributeVisitor& visitor) override { attributes_.visit(visitor); }
  std::unique_ptr<Op> clone() const override { return std::make_unique<Pad>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override;
  void backward(const BackwardContext& context) const override;
  void reference_forward(const ForwardContext& context) const override;
  void reference_backward(const BackwardContext& context) const override;

 private:
  PadAttributes attributes_;
};

Output pad(Graph& graph, const std::string& name, Output x, const PadAttributes& attributes);

}  // namespace miniqat::layers
