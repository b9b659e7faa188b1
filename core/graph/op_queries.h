#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensors/packed.h"
#include "core/tensors/tensor.h"

// Questions to any op, for those who need not know its interface (core/graph/op.h, core/graph/op_interfaces.h).

namespace miniqat {

class Graph;
class Node;
class Op;
struct Phase;

/// How a session computes: kFast is float32 with oneDNN and vectorised loops; kReference is the naive loops of
/// layers/reference, in float32 or float64, which are the specification of every op.
enum class Backend { kFast, kReference };

/// How the fast backend multiplies numbers on grids: kSimulated multiplies the float32 numbers that the integers stand
/// for; kInteger, where a layer has a kernel for it, the integers themselves, whose sums are exact. Backward is the
/// same.
enum class Arithmetic { kSimulated, kInteger };
/// "simulated" and "integer".
std::span<const std::string_view> names_of(Arithmetic);

/// What training steps of the fast backend round the factors of products to, where a layer has a faster kernel for it.
enum class FactorRounding {
  kNone,
  /// In the gradients of layers that multiply the integers of their inputs (Arithmetic::kInteger): the output's
  /// gradient, to bfloat16. Integers are exact there, sums float32.
  kGradientsToBfloat16,
  /// And both factors of all products of the layers whose inputs no quantizer has put on a grid of at most 8 bits,
  /// forward and backward.
  kAllToBfloat16,
  /// In the gradients of layers that multiply integers: the output's gradient, to bytes, by stochastic rounding
  /// (layers/reference/byte_gradient.h). Sums are exact.
  kGradientsToInt8,
};

/// A value of its own that an op keeps from step to step, float32, stored by the session as variable "<node>/<name>".
struct OpState {
  std::string name;
  Shape shape;
  double initial = 0;
};

/// Op::saved.
std::vector<TensorSpec> saved_by(const Op& op, std::span<const TensorSpec> inputs);
/// OpTraits::state.
std::vector<OpState> state_of(const Op& op);
/// "<node>/<state>", the name under which an op's own state is stored.
std::string state_name(const Node& node, const OpState& state);
/// OpTraits::delays.
std::vector<std::int64_t> delays_of(const Op& op);
std::optional<PackedForm> packed_output_of(const Op& op, std::span<const TensorSpec> inputs, const Phase& phase);
/// 0 for everything but layers.
std::int64_t multiply_adds_of(const Op& op, std::span<const TensorSpec> inputs);
/// OpTraits::no_gradient.
std::vector<int> inputs_without_gradient(const Op& op);

/// Throws Error naming the variable, its value and the op, after `source` (a file; "" for none), if an op takes this
/// variable as a variance (OpTraits::variance_inputs) and a number of `value` is below 0: its root would be NaN, and
/// with it all that comes behind.
void require_variance(const Graph& graph, const std::string& variable, const Tensor& value, const std::string& source);

/// Runs the reference loops of an op with one input and one output: x and y are both float32 or both float64.
void run_reference(const Op& op, const Tensor& x, Tensor& y);

}  // namespace miniqat
