#include "core/graph/source_ops.h"

#include <array>
#include <cmath>

#include "core/error.h"
#include "core/float_range.h"
#include "core/graph/node_check.h"
#include "core/graph/registry.h"

namespace miniqat {

void Placeholder::visit(AttributeVisitor& visitor) {
  visitor.field("shape", extents_);
  std::string dtype(name_of(spec_.dtype));
  visitor.field("dtype", dtype);
  spec_.dtype = dtype_from_name(dtype);
}

std::vector<TensorSpec> Placeholder::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 0);
  if (spec_.dtype != DType::kFloat32 && spec_.dtype != DType::kInt32)
    fail("a placeholder is float32 or int32, not ", name_of(spec_.dtype));
  return {{Shape(extents_), spec_.dtype}};
}

void Variable::visit(AttributeVisitor& visitor) {
  visitor.field("shape", attributes_.shape);
  visitor.field("trainable", attributes_.trainable);
  static constexpr std::array<std::string_view, 2> kUpdates = {"additive", "multiplicative"};
  visitor.choice("update", attributes_.update, kUpdates);
  visitor.begin("initializer");
  attributes_.initializer.visit(visitor);
  visitor.end();
}

std::vector<TensorSpec> Variable::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 0);
  attributes_.initializer.check();
  return {{Shape(attributes_.shape), DType::kFloat32}};
}

void Constant::visit(AttributeVisitor& visitor) {
  visitor.field("shape", attributes_.shape);
  visitor.field("value", attributes_.value);
}

std::vector<TensorSpec> Constant::infer(std::span<const TensorSpec> inputs) const {
  require_inputs(inputs, 0);
  const Shape shape(attributes_.shape);
  for (const double value : attributes_.value)
    if (std::isfinite(value)) require_float32(value, "value");
  const auto count = static_cast<std::int64_t>(attributes_.value.size());
  if (count != 1 && count != shape.elements())
    fail("value must be one number or ", shape.elements(), " of them for shape ", shape, ", got ", count);
  return {{shape, DType::kFloat32}};
}

void Constant::reference_forward(const ForwardContext& context) const {
  with_float_type(context.output(0), [&]<class T>(T) {
    const std::span<T> out = context.output(0).values<T>();
    const std::size_t stride = attributes_.value.size() == 1 ? 0 : 1;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(attributes_.value[i * stride]);
  });
}

Output placeholder(Graph& graph, const std::string& name, const Shape& shape, DType dtype) {
  return graph.add(name, std::make_unique<Placeholder>(TensorSpec{shape, dtype}), {}).output();
}

Output variable(Graph& graph, const std::string& name, const Shape& shape, const Initializer& initializer,
                bool trainable) {
  return graph
      .add(name, std::make_unique<Variable>(Variable::Attributes{shape.to_vector(), trainable, initializer}), {})
      .output();
}

Output constant(Graph& graph, const std::string& name, const Shape& shape, std::vector<double> value) {
  return graph.add(name, std::make_unique<Constant>(Constant::Attributes{shape.to_vector(), std::move(value)}), {})
      .output();
}

void register_source_ops() {
  register_op<Placeholder>();
  register_op<Variable>();
  register_op<Constant>();
}

}  // namespace miniqat
