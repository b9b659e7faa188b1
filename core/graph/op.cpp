#include "core/graph/op.h"

#include <algorithm>
#include <array>

#include "core/graph/graph.h"
#include "core/graph/op_interfaces.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

/// What rounding may leave of a variance of 0.
constexpr double kRounding = 1e-9;

/// The op that takes the node as a variance; null for none.
const Node* reader_as_variance(const Node& variable) {
  for (const Use& use : variable.uses()) {
    const std::vector<int> variances = use.node->op().traits().variance_inputs;
    if (std::ranges::find(variances, use.input) != variances.end()) return use.node;
  }
  return nullptr;
}

}  // namespace

void Op::backward(const BackwardContext&) const { fail(type(), " has no gradient"); }

void Op::reference_backward(const BackwardContext&) const { fail(type(), " has no gradient"); }

std::vector<TensorSpec> saved_by(const Op& op, std::span<const TensorSpec> inputs) { return op.saved(inputs); }

std::vector<OpState> state_of(const Op& op) { return op.traits().state; }

std::string state_name(const Node& node, const OpState& state) { return node.name() + "/" + state.name; }

std::vector<std::int64_t> delays_of(const Op& op) { return op.traits().delays; }

std::span<const std::string_view> names_of(Arithmetic) {
  static constexpr std::array<std::string_view, 2> kNames = {"simulated", "integer"};
  return kNames;
}

std::optional<PackedForm> packed_output_of(const Op& op, std::span<const TensorSpec> inputs, const Phase& phase) {
  const auto* packs = as<PacksOutput>(op);
  return packs != nullptr ? packs->packed_output(inputs, phase) : std::nullopt;
}

std::int64_t multiply_adds_of(const Op& op, std::span<const TensorSpec> inputs) {
  const auto* layer = as<MultipliesAndAdds>(op);
  return layer != nullptr ? layer->multiply_adds(inputs) : 0;
}

std::vector<int> inputs_without_gradient(const Op& op) { return op.traits().no_gradient; }

void require_variance(const Graph& graph, const std::string& variable, const Tensor& value, const std::string& source) {
  const Node* node = graph.find(variable);
  const Node* reader = node == nullptr ? nullptr : reader_as_variance(*node);
  if (reader == nullptr || value.elements() == 0) return;
  double least = 0;
  with_float_type(value, [&]<class T>(T) { least = *std::ranges::min_element(value.values<T>()); });
  if (least < -kRounding)
    fail(source, source.empty() ? "" : ": ", "variable ", quote(variable), " holds ", least, ", and ",
         describe(*reader), " takes it as a variance, which cannot be negative");
}

void run_reference(const Op& op, const Tensor& x, Tensor& y) {
  ForwardContext context;
  context.inputs = {&x};
  context.outputs = {&y};
  op.reference_forward(context);
}

void require_inputs(std::span<const TensorSpec> inputs, std::size_t count) {
  if (inputs.size() != count)
    fail("takes ", counted(count, "input"), ", ", inputs.size(), inputs.size() == 1 ? " is" : " are", " given");
}

void require_rank(std::span<const TensorSpec> inputs, std::size_t index, int rank, std::string_view role) {
  if (index >= inputs.size()) fail(role, " (input ", index, ") is missing, ", inputs.size(), " inputs are given");
  const Shape& shape = inputs[index].shape;
  if (shape.rank() != rank) fail(role, " must have rank ", rank, ", has rank ", shape.rank(), "; ", role, " ", shape);
}

void require_float(std::span<const TensorSpec> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) require_float(inputs[i], concat("input ", i));
}

void require_float(const TensorSpec& input, std::string_view role) {
  if (input.dtype != DType::kFloat32)
    fail(role, " must be float32, is ", name_of(input.dtype), "; ", role, " ", input.shape);
}

void require_elements(std::span<const TensorSpec> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape.elements() == 0) fail("input ", i, " is empty; its shape is ", inputs[i].shape);
}

}  // namespace miniqat
