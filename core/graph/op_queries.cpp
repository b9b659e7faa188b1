#include "core/graph/op_queries.h"

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"

namespace miniqat {

std::vector<TensorSpec> saved_by(const Op& op, std::span<const TensorSpec> inputs) {
  const auto* saves = as<SavesForBackward>(op);
  return saves != nullptr ? saves->saved(inputs) : std::vector<TensorSpec>{};
}

std::vector<OpState> state_of(const Op& op) {
  const auto* keeps = as<KeepsState>(op);
  return keeps != nullptr ? keeps->state() : std::vector<OpState>{};
}

std::string state_name(const Node& node, const OpState& state) { return node.name() + "/" + state.name; }

std::vector<std::int64_t> delays_of(const Op& op) {
  const auto* changes = as<ChangesLater>(op);
  return changes != nullptr ? changes->delays() : std::vector<std::int64_t>{};
}

std::optional<TensorSpec> packed_output_of(const Op& op, std::span<const TensorSpec> inputs, const Phase& phase) {
  const auto* packs = as<PacksOutput>(op);
  return packs != nullptr ? packs->packed_output(inputs, phase) : std::nullopt;
}

std::int64_t multiply_adds_of(const Op& op, std::span<const TensorSpec> inputs) {
  const auto* layer = as<MultipliesAndAdds>(op);
  return layer != nullptr ? layer->multiply_adds(inputs) : 0;
}

std::vector<int> inputs_without_gradient(const Op& op) { return op.traits().no_gradient; }

void run_reference(const Op& op, const Tensor& x, Tensor& y) {
  ForwardContext context;
  context.inputs = {&x};
  context.outputs = {&y};
  op.reference_forward(context);
}

}  // namespace miniqat
