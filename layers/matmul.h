#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct MatMulAttributes {
  bool transpose_a = false;
  bool transpose_b = false;

  void visit(AttributeVisitor& visitor) {
    visitor.field("transpose_a", transpose_a);
    visitor.field("transpose_b", transpose_b);
  }
  friend bool operator==(const MatMulAttributes&, const MatMulAttributes&) = default;
};

/// Matrix product of float32 matrices: inputs a [m, k] (stored [k, m] with transpose_a) and b [k, n] (stored [n, k]
/// with transpose_b); output [m, n].
struct MatMul {
  static constexpr std::string_view kType = "MatMul";
  using Attributes = MatMulAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output matmul(Graph& graph, const std::string& name, Output a, Output b,
                     const MatMulAttributes& attributes = {}) {
  return graph.add<MatMul>(name, {a, b}, attributes);
}

}  // namespace miniqat::layers
