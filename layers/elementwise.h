#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

// Elementwise arithmetic on two float32 tensors that broadcast by NumPy's rule (rank up to 8). Output: their common
// shape. The gradient of a stretched operand is the sum over the axes along which it was stretched. Throws Error with
// both shapes while building when they don't broadcast. Division by zero gives infinities and NaN as IEEE 754 has it.

/// a + b.
struct Add {
  static constexpr std::string_view kType = "Add";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// a - b.
struct Sub {
  static constexpr std::string_view kType = "Sub";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// a * b.
struct Mul {
  static constexpr std::string_view kType = "Mul";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// a / b.
struct Div {
  static constexpr std::string_view kType = "Div";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

// Functions of every element of a float32 tensor. Values outside the domain give infinities and NaN as IEEE 754 has it.

/// 1 / sqrt(x).
struct Rsqrt {
  static constexpr std::string_view kType = "Rsqrt";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// 1 / x.
struct Reciprocal {
  static constexpr std::string_view kType = "Reciprocal";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

/// x * x.
struct Square {
  static constexpr std::string_view kType = "Square";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output add(Graph& graph, const std::string& name, Output a, Output b) { return graph.add<Add>(name, {a, b}); }
inline Output sub(Graph& graph, const std::string& name, Output a, Output b) { return graph.add<Sub>(name, {a, b}); }
inline Output mul(Graph& graph, const std::string& name, Output a, Output b) { return graph.add<Mul>(name, {a, b}); }
inline Output div(Graph& graph, const std::string& name, Output a, Output b) { return graph.add<Div>(name, {a, b}); }
inline Output rsqrt(Graph& graph, const std::string& name, Output x) { return graph.add<Rsqrt>(name, {x}); }
inline Output reciprocal(Graph& graph, const std::string& name, Output x) { return graph.add<Reciprocal>(name, {x}); }
inline Output square(Graph& graph, const std::string& name, Output x) { return graph.add<Square>(name, {x}); }

/// y[..., c] = x[..., c] + bias[c]. Inputs x [..., c] float32 (rank 1 or more), bias [c]; output like x.
/// Throws Error while building when the bias has another length than x's last axis.
struct BiasAdd {
  static constexpr std::string_view kType = "BiasAdd";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output bias_add(Graph& graph, const std::string& name, Output x, Output bias) {
  return graph.add<BiasAdd>(name, {x, bias});
}

}  // namespace miniqat::layers
