#include "layers/sigmoid.h"

#include <cmath>

#include "layers/reference/sigmoid.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// e^-|x| never overflows, and below 0 it keeps the digits that 1 + e^-x would round away. The loop is the same on every
// instruction set, and std::exp one call an element: a vectorised one would have other bits on some.
struct SigmoidRule {
  using Reference = reference::SigmoidRule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) {
    const float e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1.0f) / (1 + e);
  }
  static float d_x(float d, float y) { return d * y * (1 - y); }
};

}  // namespace

std::shared_ptr<Op> Sigmoid::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<Sigmoid, SigmoidRule>>(attributes);
}

Output sigmoid(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, Sigmoid::make(), {x}).output();
}

}  // namespace miniqat::layers
