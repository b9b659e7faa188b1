#include "layers/relu.h"

#include "core/tensors/dtype.h"
#include "layers/chain/chain_fusion.h"
#include "layers/reference/relu.h"
#include "layers/unary_op.h"

namespace miniqat::layers {
namespace {

// Comparisons are written so that NaN fails them and passes through.

struct ReluRule {
  using Reference = reference::ReluRule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) { return x < 0 ? 0 : x; }
  static float d_x(float d, float y) { return y > 0 ? d : 0; }
};

struct Relu6Rule {
  using Reference = reference::Relu6Rule;
  static constexpr bool kReadsOutput = true;
  static float value(float x) {
    const float positive = x < 0 ? 0 : x;
    return positive > 6 ? 6 : positive;
  }
  static float d_x(float d, float y) { return ((y > 0) & (y < 6)) ? d : 0; }
};

class ReluOp final : public UnaryOp<Relu, ReluRule>, public ChainMember {
 public:
  using UnaryOp::UnaryOp;
  std::optional<ChainRole> chain_role() const override { return chain_role::Clamp{.high = kInfinity}; }
};

class Relu6Op final : public UnaryOp<Relu6, Relu6Rule>, public ChainMember {
 public:
  using UnaryOp::UnaryOp;
  std::optional<ChainRole> chain_role() const override { return chain_role::Clamp{.high = 6}; }
};

}  // namespace

std::shared_ptr<Op> Relu::make(const Attributes& attributes) { return std::make_shared<ReluOp>(attributes); }

std::shared_ptr<Op> Relu6::make(const Attributes& attributes) { return std::make_shared<Relu6Op>(attributes); }

Output relu(Graph& graph, const std::string& name, Output x) { return graph.add(name, Relu::make(), {x}).output(); }

Output relu6(Graph& graph, const std::string& name, Output x) { return graph.add(name, Relu6::make(), {x}).output(); }

}  // namespace miniqat::layers
