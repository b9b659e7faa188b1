#include "layers/hard_swish.h"

#include "layers/reference/hard_swish.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// The gate, (x + 3) / 6 held within [0, 1], is exactly 1 from 3 on. Comparisons are written so that NaN fails them.
struct HardSwishRule {
  using Reference = reference::HardSwishRule;
  static constexpr bool kReadsOutput = false;
  static float value(float x) {
    const float raised = x + 3 > 6 ? 6 : x + 3;
    return x <= -3 ? 0 : x * (raised / 6);
  }
  static float d_x(float d, float x) {
    const float inside = (x + 1.5f) / 3;
    const float slope = x >= 3 ? 1 : inside;
    return x <= -3 ? 0 : d * slope;
  }
};

}  // namespace

std::shared_ptr<Op> HardSwish::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<HardSwish, HardSwishRule>>(attributes);
}

Output hard_swish(Graph& graph, const std::string& name, Output x) {
  return graph.add(name, HardSwish::make(), {x}).output();
}

}  // namespace miniqat::layers
