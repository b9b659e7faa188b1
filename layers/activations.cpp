#include "layers/activations.h"

#include <cmath>

#include "core/tensors/dtype.h"
#include "layers/chain/chain_fusion.h"
#include "layers/reference/activations.h"
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

struct ClipRule {
  using Reference = reference::ClipRule;
  static constexpr bool kReadsOutput = true;
  explicit ClipRule(const ClipAttributes& attributes)
      : low(static_cast<float>(attributes.low)), high(static_cast<float>(attributes.high)) {}
  float value(float x) const {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  float d_x(float d, float y) const { return ((y > low) & (y < high)) ? d : 0; }

  float low, high;
};

class ClipOp final : public UnaryOp<Clip, ClipRule> {
 public:
  using UnaryOp::UnaryOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    const auto& [low, high] = attributes_;
    constexpr double kMost = ClipAttributes::kMost;
    if (!(std::abs(low) <= kMost)) fail("low must be in [", -kMost, ", ", kMost, "], is ", low);
    if (!(std::abs(high) <= kMost)) fail("high must be in [", -kMost, ", ", kMost, "], is ", high);
    if (!(static_cast<float>(low) < static_cast<float>(high)))
      fail("low must be less than high; low ", low, ", high ", high);
    return UnaryOp::infer(inputs);
  }
};

struct HardSigmoidRule {
  using Reference = reference::HardSigmoidRule;
  static constexpr bool kReadsOutput = true;
  explicit HardSigmoidRule(const HardSigmoidAttributes& attributes)
      : alpha(static_cast<float>(attributes.alpha)), beta(static_cast<float>(attributes.beta)) {}
  float value(float x) const {
    const float line = alpha * x + beta;
    const float raised = line < 0 ? 0 : line;
    return raised > 1 ? 1 : raised;
  }
  float d_x(float d, float y) const {
    const float slope = y <= 0 ? 0 : alpha;
    return y >= 1 ? 0 : d * slope;
  }

  float alpha, beta;
};

class HardSigmoidOp final : public UnaryOp<HardSigmoid, HardSigmoidRule> {
 public:
  using UnaryOp::UnaryOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr double kMost = 1e30;
    const auto& [alpha, beta] = attributes_;
    if (!(std::abs(alpha) <= kMost)) fail("alpha must be in [-", kMost, ", ", kMost, "], is ", alpha);
    if (!(std::abs(beta) <= kMost)) fail("beta must be in [-", kMost, ", ", kMost, "], is ", beta);
    return UnaryOp::infer(inputs);
  }
};

// The gate, (x + 3) / 6 held within [0, 1], is exactly 1 from 3 on.
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

// The output has the sign of the input, or is 0, for no alpha is negative.
struct LeakyReluRule {
  using Reference = reference::LeakyReluRule;
  static constexpr bool kReadsOutput = true;
  explicit LeakyReluRule(const LeakyReluAttributes& attributes) : alpha(static_cast<float>(attributes.alpha)) {}
  float value(float x) const { return x < 0 ? alpha * x : x; }
  float d_x(float d, float y) const { return y > 0 ? d : alpha * d; }

  float alpha;
};

class LeakyReluOp final : public UnaryOp<LeakyRelu, LeakyReluRule> {
 public:
  using UnaryOp::UnaryOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    constexpr double kMost = 1e30;
    if (!(attributes_.alpha >= 0 && attributes_.alpha <= kMost))
      fail("alpha must be in [0, ", kMost, "], is ", attributes_.alpha);
    return UnaryOp::infer(inputs);
  }
};

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

std::shared_ptr<Op> Relu::make(const Attributes& attributes) { return std::make_shared<ReluOp>(attributes); }

std::shared_ptr<Op> Relu6::make(const Attributes& attributes) { return std::make_shared<Relu6Op>(attributes); }

std::shared_ptr<Op> Clip::make(const Attributes& attributes) { return std::make_shared<ClipOp>(attributes); }

std::shared_ptr<Op> HardSigmoid::make(const Attributes& attributes) {
  return std::make_shared<HardSigmoidOp>(attributes);
}

std::shared_ptr<Op> HardSwish::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<HardSwish, HardSwishRule>>(attributes);
}

std::shared_ptr<Op> LeakyRelu::make(const Attributes& attributes) { return std::make_shared<LeakyReluOp>(attributes); }

std::shared_ptr<Op> Sigmoid::make(const Attributes& attributes) {
  return std::make_shared<UnaryOp<Sigmoid, SigmoidRule>>(attributes);
}

}  // namespace miniqat::layers
