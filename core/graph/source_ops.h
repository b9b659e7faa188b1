#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/tensor.h"

namespace miniqat {

/// How a variable starts. fan_in and fan_out of a filter [kh, kw, in, out] are kh*kw*in and kh*kw*out, of a matrix
/// [in, out] its extents.
struct Initializer {
  enum class Kind {
    /// Glorot uniform for rank 2 and above, zeros below.
    kDefault,
    kConstant,
    /// stddev * a normal within two standard deviations, plus mean.
    kTruncatedNormal,
    /// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16).
    kGlorotUniform,
    /// Truncated normal with variance 2 / fan_in after truncation (He et al. 2015, eq. 10).
    kHeNormal,
  };

  Kind kind = Kind::kDefault;
  double value = 0;
  double mean = 0;
  double stddev = 0.05;

  static Initializer constant(double value) { return {.kind = Kind::kConstant, .value = value}; }
  static Initializer truncated_normal(double stddev) { return {.kind = Kind::kTruncatedNormal, .stddev = stddev}; }
  static Initializer glorot_uniform() { return {.kind = Kind::kGlorotUniform}; }
  static Initializer he_normal() { return {.kind = Kind::kHeNormal}; }
  /// he_normal for a variable whose shape does not tell its fan_in, as a truncated_normal.
  static Initializer he_normal(double fan_in);

  /// As JSON {"type": "truncated_normal", "stddev": 0.09}; "glorot_uniform", "he_normal", {"type": "constant", "value":
  /// 0}.
  void visit(AttributeVisitor& visitor);
  /// Throws Error when a number is not finite or stddev is negative.
  void check() const;
  /// Fills a float32 or float64 tensor; the same key gives the same numbers (float32 ones, widened) for either.
  void fill(Tensor& tensor, std::uint64_t key) const;
};

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
  /// Adds a number to each element.
  kAdditive,
  /// Multiplies each element by a positive factor: it keeps its sign, and 0 stays 0. For scales and ends of ranges.
  /// Never decays.
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

  void visit(AttributeVisitor& visitor) {
    visitor.field("shape", shape);
    visitor.field("value", value);
  }
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
