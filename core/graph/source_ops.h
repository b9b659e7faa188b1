#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/initializer.h"

namespace miniqat {

struct PlaceholderAttributes {
  std::vector<std::int64_t> shape = {};
  /// kFloat32 or kInt32.
  DType dtype = DType::kFloat32;

  void visit(AttributeVisitor& visitor);
};

/// A tensor that the caller feeds.
struct Placeholder {
  static constexpr std::string_view kType = "Placeholder";
  using Attributes = PlaceholderAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// How an optimizer changes a trainable variable.
enum class VariableUpdateKind {
  /// By adding.
  kAdditive,
  /// By a positive factor for each element: it keeps its sign, and 0 stays 0. For scales and ends of ranges. Never
  /// decays.
  kMultiplicative,
};

struct VariableAttributes {
  std::vector<std::int64_t> shape = {};
  bool trainable = true;
  Initializer initializer = {};
  VariableUpdateKind update = VariableUpdateKind::kAdditive;

  void visit(AttributeVisitor& visitor);
};

/// A float32 value that the session keeps from run to run.
struct Variable {
  static constexpr std::string_view kType = "Variable";
  using Attributes = VariableAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

struct ConstantAttributes {
  std::vector<std::int64_t> shape = {};
  /// One number for all elements, or all of them.
  std::vector<double> value = {0};

  void visit(AttributeVisitor& visitor);
};

/// A float32 tensor that never changes.
struct Constant {
  static constexpr std::string_view kType = "Constant";
  using Attributes = ConstantAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// Builders. Each adds one node and returns its output; they throw what Graph::add throws.
Output placeholder(Graph& graph, const std::string& name, const Shape& shape, DType dtype = DType::kFloat32);
Output variable(Graph& graph, const std::string& name, const Shape& shape, const Initializer& initializer = {},
                bool trainable = true);
Output constant(Graph& graph, const std::string& name, const Shape& shape, std::vector<double> value);

void register_source_ops();

}  // namespace miniqat
