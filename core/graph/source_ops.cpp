#include "core/graph/source_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "core/graph/op.h"
#include "core/graph/registry.h"
#include "core/platform/interruption.h"
#include "core/tensors/dtype.h"
#include "core/tensors/random.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

/// The standard deviation of a standard normal that is cut off at two standard deviations:
/// sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)) with the normal's density phi and distribution Phi.
constexpr double kTruncatedStddev = 0.87962566103423978;

double he_stddev(double fan_in) { return std::sqrt(2 / fan_in) / kTruncatedStddev; }

struct Fans {
  double in = 1;
  double out = 1;
};

Fans fans_of(const Shape& shape) {
  if (shape.rank() < 2) return {static_cast<double>(shape.elements()), static_cast<double>(shape.elements())};
  Fans fans = {static_cast<double>(shape[-2]), static_cast<double>(shape[-1])};
  for (int axis = 0; axis < shape.rank() - 2; ++axis) {
    fans.in *= static_cast<double>(shape[axis]);
    fans.out *= static_cast<double>(shape[axis]);
  }
  return fans;
}

/// Stores draw(), a float, in every element in turn. Of a large tensor that takes seconds.
template <class T, class Draw>
void fill_with(std::span<T> elements, const Draw& draw) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (std::size_t first = 0; first < elements.size(); first += kPiece) {
    if (first > 0) interruption_point();
    for (T& element : elements.subspan(first, std::min(kPiece, elements.size() - first))) element = draw();
  }
}

template <class Draw>
void fill_with(Tensor& tensor, const Draw& draw) {
  if (tensor.dtype() == DType::kFloat64)
    fill_with(tensor.values<double>(), draw);
  else
    fill_with(tensor.values<float>(), draw);
}

void fill_truncated_normal(Tensor& tensor, std::uint64_t key, double mean, double stddev) {
  Random random(key);
  const auto center = static_cast<float>(mean);
  const auto scale = static_cast<float>(stddev);
  fill_with(tensor, [&] { return center + scale * random.truncated_normal(); });
}

void fill_uniform(Tensor& tensor, std::uint64_t key, double limit) {
  Random random(key);
  const auto bound = static_cast<float>(limit);
  fill_with(tensor, [&] { return random.uniform(-bound, bound); });
}

}  // namespace

Initializer Initializer::he_normal(double fan_in) { return truncated_normal(he_stddev(fan_in)); }

void Initializer::visit(AttributeVisitor& visitor) {
  static constexpr std::array<std::string_view, 5> kNames = {"default", "constant", "truncated_normal",
                                                             "glorot_uniform", "he_normal"};
  visitor.choice("type", kind, kNames);
  if (kind == Kind::kConstant) visitor.field("value", value);
  if (kind == Kind::kTruncatedNormal) {
    visitor.field("mean", mean);
    visitor.field("stddev", stddev);
  }
}

void Initializer::check() const {
  require_float32(value, "initializer value");
  require_float32(mean, "initializer mean");
  require_float32(stddev, "initializer stddev");
  if (stddev < 0) fail("initializer stddev must not be negative, is ", stddev);
}

void Initializer::fill(Tensor& tensor, std::uint64_t key) const {
  if (tensor.elements() == 0) return;
  const Fans fans = fans_of(tensor.shape());
  const double glorot_limit = std::sqrt(6 / (fans.in + fans.out));
  switch (kind) {
    case Kind::kDefault:
      fill_uniform(tensor, key, tensor.shape().rank() >= 2 ? glorot_limit : 0);
      break;
    case Kind::kConstant:
      fill_with(tensor, [this] { return static_cast<float>(value); });
      break;
    case Kind::kTruncatedNormal:
      fill_truncated_normal(tensor, key, mean, stddev);
      break;
    case Kind::kGlorotUniform:
      fill_uniform(tensor, key, glorot_limit);
      break;
    case Kind::kHeNormal:
      fill_truncated_normal(tensor, key, 0, he_stddev(fans.in));
      break;
  }
}

void PlaceholderAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("shape", shape);
  std::string name(name_of(dtype));
  visitor.field("dtype", name);
  dtype = dtype_from_name(name);
}

void VariableAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("shape", shape);
  visitor.field("trainable", trainable);
  static constexpr std::array<std::string_view, 2> kUpdates = {"additive", "multiplicative"};
  visitor.choice("update", update, kUpdates);
  visitor.begin("initializer");
  initializer.visit(visitor);
  visitor.end();
}

namespace {

/// Its value comes from the session, as a variable's does.
class PlaceholderOp final : public OpOf<Placeholder> {
 public:
  using OpOf::OpOf;
  bool writes_default(std::string_view) const override { return true; }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 0);
    if (attributes_.dtype != DType::kFloat32 && attributes_.dtype != DType::kInt32)
      fail("a placeholder is float32 or int32, not ", name_of(attributes_.dtype));
    return {{Shape(attributes_.shape), attributes_.dtype}};
  }

  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}
};

class VariableOp final : public OpOf<Variable> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 0);
    attributes_.initializer.check();
    return {{Shape(attributes_.shape), DType::kFloat32}};
  }

  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}
};

class ConstantOp final : public OpOf<Constant> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 0);
    const Shape shape(attributes_.shape);
    for (const double value : attributes_.value)
      if (std::isfinite(value)) require_float32(value, "value");
    const auto count = static_cast<std::int64_t>(attributes_.value.size());
    if (count != 1 && count != shape.elements())
      fail("value must be one number or ", shape.elements(), " of them for shape ", shape, ", got ", count);
    return {{shape, DType::kFloat32}};
  }

  void forward(const ForwardContext& context) const override { reference_forward(context); }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.output(0), [&]<class T>(T) {
      const std::span<T> out = context.output(0).values<T>();
      const std::size_t stride = attributes_.value.size() == 1 ? 0 : 1;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(attributes_.value[i * stride]);
    });
  }
};

}  // namespace

std::shared_ptr<Op> Placeholder::make(const Attributes& attributes) {
  return std::make_shared<PlaceholderOp>(attributes);
}

std::shared_ptr<Op> Variable::make(const Attributes& attributes) { return std::make_shared<VariableOp>(attributes); }

std::shared_ptr<Op> Constant::make(const Attributes& attributes) { return std::make_shared<ConstantOp>(attributes); }

Output placeholder(Graph& graph, const std::string& name, const Shape& shape, DType dtype) {
  return graph.add<Placeholder>(name, {}, {shape.to_vector(), dtype});
}

Output variable(Graph& graph, const std::string& name, const Shape& shape, const Initializer& initializer,
                bool trainable) {
  return graph.add<Variable>(name, {}, {shape.to_vector(), trainable, initializer});
}

Output constant(Graph& graph, const std::string& name, const Shape& shape, std::vector<double> value) {
  return graph.add<Constant>(name, {}, {shape.to_vector(), std::move(value)});
}

void register_source_ops() {
  register_op<Placeholder>();
  register_op<Variable>();
  register_op<Constant>();
}

}  // namespace miniqat
