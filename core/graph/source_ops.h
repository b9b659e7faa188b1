#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/initializer.h"
#include "core/graph/op.h"

namespace miniqat {

/// A tensor that the caller feeds. Attributes: shape, dtype ("float32" or "int32").
class Placeholder final : public Op {
 public:
  explicit Placeholder(TensorSpec spec = {}) : spec_(spec), extents_(spec_.shape.to_vector()) {}
  std::string_view type() const override { return "Placeholder"; }
  void visit(AttributeVisitor& visitor) override;
  std::unique_ptr<Op> clone() const override { return std::make_unique<Placeholder>(*this); }
  bool writes_default(std::string_view) const override { return true; }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}

 private:
  TensorSpec spec_;
  std::vector<std::int64_t> extents_;
};

/// How an optimizer changes a trainable variable.
enum class VariableUpdateKind {
  /// By adding.
  kAdditive,
  /// By a positive factor for each element: it keeps its sign, and 0 stays 0. For scales and ends of ranges. Never
  /// decays.
  kMultiplicative,
};

/// A float32 value that the session keeps from run to run. Attributes: shape, trainable (true), update ("additive"),
/// initializer.
class Variable final : public Op {
 public:
  struct Attributes {
    std::vector<std::int64_t> shape = {};
    bool trainable = true;
    Initializer initializer = {};
    VariableUpdateKind update = VariableUpdateKind::kAdditive;
  };

  Variable() = default;
  explicit Variable(Attributes attributes) : attributes_(std::move(attributes)) {}
  const Attributes& attributes() const { return attributes_; }
  std::string_view type() const override { return "Variable"; }
  void visit(AttributeVisitor& visitor) override;
  std::unique_ptr<Op> clone() const override { return std::make_unique<Variable>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}

 private:
  Attributes attributes_;
};

/// A float32 tensor that never changes. Attributes: shape, value (one number for all elements, or a flat list).
class Constant final : public Op {
 public:
  struct Attributes {
    std::vector<std::int64_t> shape = {};
    std::vector<double> value = {0};
  };

  Constant() = default;
  explicit Constant(Attributes attributes) : attributes_(std::move(attributes)) {}
  const Attributes& attributes() const { return attributes_; }
  std::string_view type() const override { return "Constant"; }
  void visit(AttributeVisitor& visitor) override;
  std::unique_ptr<Op> clone() const override { return std::make_unique<Constant>(*this); }
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  void forward(const ForwardContext& context) const override { reference_forward(context); }
  void reference_forward(const ForwardContext& context) const override;

 private:
  Attributes attributes_;
};

/// Builders. Each adds one node and returns its output; they throw what Graph::add throws.
Output placeholder(Graph& graph, const std::string& name, const Shape& shape, DType dtype = DType::kFloat32);
Output variable(Graph& graph, const std::string& name, const Shape& shape, const Initializer& initializer = {},
                bool trainable = true);
Output constant(Graph& graph, const std::string& name, const Shape& shape, std::vector<double> value);

void register_source_ops();

}  // namespace miniqat
