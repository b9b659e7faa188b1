#include "core/graph/source_ops.h"

#include <array>
#include <cmath>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "core/graph/registry.h"
#include "core/tensors/float_range.h"
#include "core/text/error.h"

namespace miniqat {

// The values of placeholders and variables come from the session.

class PlaceholderOp final : public OpOf<Placeholder> {
 public:
  using OpOf::OpOf;
  bool writes_default(std::string_view) const override { return true; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}
};

class VariableOp final : public OpOf<Variable> {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}
};

class ConstantOp final : public OpOf<Constant> {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override { reference_forward(context); }
  void reference_forward(const ForwardContext& context) const override;
};

std::shared_ptr<Op> Placeholder::make(const Attributes& attributes) {
  return std::make_shared<PlaceholderOp>(attributes);
}

void PlaceholderAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("shape", shape);
  std::string name(name_of(dtype));
  visitor.field("dtype", name);
  dtype = dtype_from_name(name);
}

std::vector<TensorSpec> PlaceholderOp::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 0);
  if (attributes_.dtype != DType::kFloat32 && attributes_.dtype != DType::kInt32)
    fail("a placeholder is float32 or int32, not ", name_of(attributes_.dtype));
  return {{Shape(attributes_.shape), attributes_.dtype}};
}

std::shared_ptr<Op> Variable::make(const Attributes& attributes) { return std::make_shared<VariableOp>(attributes); }

void VariableAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("shape", shape);
  visitor.field("trainable", trainable);
  static constexpr std::array<std::string_view, 2> kUpdates = {"additive", "multiplicative"};
  visitor.choice("update", update, kUpdates);
  visitor.begin("initializer");
  initializer.visit(visitor);
  visitor.end();
}

std::vector<TensorSpec> VariableOp::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 0);
  attributes_.initializer.check();
  return {{Shape(attributes_.shape), DType::kFloat32}};
}

std::shared_ptr<Op> Constant::make(const Attributes& attributes) { return std::make_shared<ConstantOp>(attributes); }

void ConstantAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("shape", shape);
  visitor.field("value", value);
}

std::vector<TensorSpec> ConstantOp::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 0);
  const Shape shape(attributes_.shape);
  for (const double value : attributes_.value)
    if (std::isfinite(value)) require_float32(value, "value");
  const auto count = static_cast<std::int64_t>(attributes_.value.size());
  if (count != 1 && count != shape.elements())
    fail("value must be one number or ", shape.elements(), " of them for shape ", shape, ", got ", count);
  return {{shape, DType::kFloat32}};
}

void ConstantOp::reference_forward(const ForwardContext& context) const {
  with_float_type(context.output(0), [&]<class T>(T) {
    const std::span<T> out = context.output(0).values<T>();
    const std::size_t stride = attributes_.value.size() == 1 ? 0 : 1;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(attributes_.value[i * stride]);
  });
}

Output placeholder(Graph& graph, const std::string& name, const Shape& shape, DType dtype) {
  return graph.add(name, Placeholder::make({shape.to_vector(), dtype}), {}).output();
}

Output variable(Graph& graph, const std::string& name, const Shape& shape, const Initializer& initializer,
                bool trainable) {
  return graph.add(name, Variable::make({shape.to_vector(), trainable, initializer}), {}).output();
}

Output constant(Graph& graph, const std::string& name, const Shape& shape, std::vector<double> value) {
  return graph.add(name, Constant::make({shape.to_vector(), std::move(value)}), {}).output();
}

void register_source_ops() {
  register_op<Placeholder>();
  register_op<Variable>();
  register_op<Constant>();
}

}  // namespace miniqat
