#include "core/graph/losses.h"

#include <algorithm>

#include "core/graph/op_interfaces.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

LossInputs inputs_of_loss(const Node& node) {
  const std::optional<LossInputs> inputs = loss_inputs(node.op());
  if (!inputs) fail(describe(node), " is no loss");
  return *inputs;
}

}  // namespace

std::optional<LossInputs> loss_inputs(const Op& op) {
  const auto* loss = as<MeasuresLoss>(op);
  return loss != nullptr ? std::optional(loss->loss_inputs()) : std::nullopt;
}

bool is_loss(const Node& node) { return loss_inputs(node.op()).has_value(); }

bool is_target(const Use& use) {
  const std::optional<LossInputs> inputs = loss_inputs(use.node->op());
  return inputs && inputs->target == use.input;
}

bool leads_to_targets(const Use& use) {
  // A file may hold a chain far longer than the call stack is deep.
  std::vector<Use> pending = {use};
  while (!pending.empty()) {
    const Use next = pending.back();
    pending.pop_back();
    if (is_target(next)) continue;
    const Node& node = *next.node;
    const std::span<const Use> uses = node.uses();
    if (node.inputs().size() != 1 || uses.empty()) return false;
    pending.insert(pending.end(), uses.begin(), uses.end());
  }
  return true;
}

Output prediction_of(const Node& loss) { return loss.input(inputs_of_loss(loss).prediction); }

Output target_of(const Node& loss) { return loss.input(inputs_of_loss(loss).target); }

std::vector<const Node*> losses_with_target(const Output& target, TargetValues values) {
  std::vector<const Node*> losses;
  for (const Use& use : target.node->uses(target.index)) {
    const std::optional<LossInputs> inputs = loss_inputs(use.node->op());
    if (inputs && inputs->target == use.input && inputs->values == values) losses.push_back(use.node);
  }
  return losses;
}

}  // namespace miniqat
