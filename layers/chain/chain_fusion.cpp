#include "layers/chain/chain_fusion.h"

#include "layers/chain/chain.h"

namespace miniqat::layers {
namespace {

/// How far a chain has come: each part may only follow those before it.
enum class Stage { kStart, kScaled, kShifted, kAdded, kClamped, kRounded, kPooled };

bool is_vector_for(const Output& vector, const Output& x) {
  return vector.shape().rank() == 1 && x.shape().rank() > 1 && vector.shape()[0] == x.shape().channels();
}

/// No gradient passes the op that makes this tensor.
bool is_without_gradient(const Output& output) {
  const OpTraits traits = output.node->op().traits();
  return !output.node->inputs().empty() && traits.no_gradient.size() == output.node->inputs().size();
}

/// Grows a chain op by op.
class Builder {
 public:
  explicit Builder(const FusionScope& scope) : scope_(scope) {}

  /// Takes the node as the next part, with `flow` the chain's tensor so far. False when it does not fit.
  bool take(const Node& node, Output flow) {
    if (!absorb(node, flow)) return false;
    nodes_.push_back(&node);
    const OpTraits traits = node.op().traits();
    parts_.state.insert(parts_.state.end(), traits.state.begin(), traits.state.end());
    parts_.delays.insert(parts_.delays.end(), traits.delays.begin(), traits.delays.end());
    type_ += (type_.empty() ? "" : "+") + std::string(node.type());
    return true;
  }

  void begin(Output x) { inputs_ = {x}; }
  /// Ops that do as well alone need not be chains: BatchNorm and BiasAdd have these kernels themselves.
  bool pays() const { return nodes_.size() > 1 || gains_alone_; }

  Fusion finish() {
    std::vector<Output> outputs = {const_cast<Node*>(nodes_.back())->output()};
    if (norm_ != nullptr) outputs.insert(outputs.end(), {norm_->output(1), norm_->output(2)});
    const Node* named_after = quantizer_ != nullptr ? quantizer_ : nodes_.back();
    return {.op = std::make_shared<Chain>(std::move(parts_), std::move(type_)),
            .inputs = std::move(inputs_),
            .outputs = std::move(outputs),
            .nodes = std::move(nodes_),
            .named_after = named_after};
  }

 private:
  bool absorb(const Node& node, Output flow) {
    const auto* member = as<ChainMember>(node.op());
    const std::optional<ChainRole> role = member != nullptr ? member->chain_role() : std::nullopt;
    return role && std::visit([&](const auto& part) { return join(part, node, flow); }, *role);
  }

  /// A reader of a batch norm's statistics might feed a later part of the chain: the chain would wait for itself.
  bool gives_statistics() const {
    return norm_ != nullptr && (scope_.is_read(norm_->output(1)) || scope_.is_read(norm_->output(2)));
  }

  /// True, and the chain is at `stage`, when it has not been there yet.
  bool reach(Stage stage) {
    if (stage_ >= stage) return false;
    stage_ = stage;
    return true;
  }

  int add_input(Output input) {
    inputs_.push_back(input);
    return static_cast<int>(inputs_.size()) - 1;
  }

  bool flows_into(const Node& node, Output flow) const { return scope_.inputs(node)[0] == flow; }

  /// The operand of a two-operand op that is not the chain's own tensor; null when both are.
  std::optional<Output> other_operand(const Node& node, Output flow) const {
    const std::span<const Output> inputs = scope_.inputs(node);
    if (inputs[0] == inputs[1]) return std::nullopt;
    return inputs[inputs[0] == flow ? 1 : 0];
  }

  bool join(const chain_role::Scale&, const Node& node, Output flow) {
    const std::optional<Output> vector = other_operand(node, flow);
    if (!vector || !is_vector_for(*vector, flow)) return false;
    if (reach(Stage::kScaled)) {
      parts_.scale_input = add_input(*vector);
      gains_alone_ = true;
      return true;
    }
    if (stage_ != Stage::kScaled || parts_.second_scale_input >= 0) return false;
    parts_.second_scale_input = add_input(*vector);
    return true;
  }

  bool join(const chain_role::Normalization& norm, const Node& node, Output flow) {
    if (!flows_into(node, flow)) return false;
    const bool trained_scale = parts_.scale_input >= 0 && !is_without_gradient(inputs_[parts_.scale_input]);
    // For the statistics alone BatchNorm itself does less.
    if (trained_scale || parts_.second_scale_input >= 0 || !scope_.is_read(node.output()) || !reach(Stage::kShifted))
      return false;
    const std::span<const Output> inputs = scope_.inputs(node);
    parts_.norm = {
        .attributes = norm.attributes, .input = static_cast<int>(inputs_.size()), .factor_input = parts_.scale_input};
    inputs_.insert(inputs_.end(), inputs.begin() + 1, inputs.end());
    norm_ = &node;
    return true;
  }

  bool absorb_bias(Output vector) {
    if (!is_vector_for(vector, inputs_[0]) || !reach(Stage::kShifted)) return false;
    parts_.bias_input = add_input(vector);
    return true;
  }

  bool join(const chain_role::Bias&, const Node& node, Output flow) {
    return flows_into(node, flow) && absorb_bias(scope_.inputs(node)[1]);
  }

  bool join(const chain_role::Sum&, const Node& node, Output flow) {
    const std::optional<Output> other = other_operand(node, flow);
    if (!other) return false;
    if (is_vector_for(*other, flow)) return gains_alone_ = absorb_bias(*other);
    if (other->shape() != flow.shape() || gives_statistics() || !reach(Stage::kAdded)) return false;
    parts_.addend_input = add_input(*other);
    return true;
  }

  bool join(const chain_role::Clamp& clamp, const Node& node, Output flow) {
    if (!flows_into(node, flow) || !reach(Stage::kClamped)) return false;
    parts_.clamps = true;
    parts_.low = 0;
    parts_.high = clamp.high;
    return true;
  }

  bool join(const chain_role::Rounding& rounding, const Node& node, Output flow) {
    if (!flows_into(node, flow)) return false;
    const std::span<const Output> inputs = scope_.inputs(node);
    const ChainQuantizer& quantizer = *rounding.quantizer;
    // A range that is taken as it is has a gradient, for which a mask is not enough.
    const bool leaves_gradients = quantizer.observes_range() || quantizer.trains_range() || !scope_.differentiates();
    if (!leaves_gradients || (gives_statistics() && !quantizer.observes_range())) return false;
    if (!reach(Stage::kRounded)) return false;
    parts_.range_input = static_cast<int>(inputs_.size());
    inputs_.insert(inputs_.end(), {inputs[1], inputs[2]});
    parts_.quantizer = rounding.quantizer;
    quantizer_ = &node;
    return true;
  }

  bool join(const chain_role::MaxPooling& pooling, const Node& node, Output flow) {
    if (!flows_into(node, flow)) return false;
    const PoolAttributes& pool = pooling.attributes;
    const Shape& x = flow.shape();
    const bool apart = pool.strides == std::array<std::int64_t, 2>{0, 0} || pool.strides == pool.window;
    const bool divides = x[1] % pool.window[0] == 0 && x[2] % pool.window[1] == 0;
    const bool inside = pool.padding == Padding::kValid || (pool.padding == Padding::kSame && divides);
    if (!apart || !inside || pool.window[0] * pool.window[1] > kMostTaps || parts_.needs_input() ||
        parts_.addend_input >= 0 || !reach(Stage::kPooled))
      return false;
    parts_.pool = pool;
    return true;
  }

  const FusionScope& scope_;
  ChainParts parts_;
  std::string type_;
  std::vector<Output> inputs_;
  std::vector<const Node*> nodes_;
  const Node* norm_ = nullptr;
  const Node* quantizer_ = nullptr;
  Stage stage_ = Stage::kStart;
  bool gains_alone_ = false;
};

/// The tensor that a chain beginning with this node would flow from: of two operands the one that is no vector.
Output flow_into(const Node& node, const FusionScope& scope) {
  const std::span<const Output> inputs = scope.inputs(node);
  return inputs.size() == 2 && is_vector_for(inputs[0], inputs[1]) ? inputs[1] : inputs[0];
}

}  // namespace

std::optional<Fusion> ChainMember::fuse(const Node& self, const FusionScope& scope) const {
  Builder builder(scope);
  const Output x = flow_into(self, scope);
  builder.begin(x);
  if (!builder.take(self, x)) return std::nullopt;
  for (const Node* node = &self;;) {
    const Output flow = node->output();
    node = scope.only_reader(flow);
    if (node == nullptr || !builder.take(*node, flow)) break;
  }
  if (!builder.pays()) return std::nullopt;
  return builder.finish();
}

}  // namespace miniqat::layers
