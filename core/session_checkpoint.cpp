#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/finite.h"
#include "core/quote.h"
#include "core/session.h"
#include "core/source_ops.h"
#include "core/suggest.h"

namespace miniqat {
namespace {

constexpr std::string_view kOptimizer = "optimizer:";
constexpr std::string_view kStep = "session:step";
constexpr std::string_view kQuantizationStep = "session:quantization_step";

/// Not a variable: no node's name holds a colon.
bool is_extra(const std::string& name) { return name.find(':') != std::string::npos; }
bool is_counter(const std::string& name) { return name == kStep || name == kQuantizationStep; }

std::int64_t counter(const Safetensors& content, std::string_view name, const std::string& source) {
  const auto found = content.tensors.find(std::string(name));
  if (found == content.tensors.end()) fail(source, ": ", quote(name), " is missing");
  const Tensor& tensor = found->second;
  if (tensor.dtype() != DType::kInt64 || tensor.elements() != 1 || *tensor.data<std::int64_t>() < 0)
    fail(source, ": ", quote(name), " must be one int64 that is not negative");
  return *tensor.data<std::int64_t>();
}

void require_shape(const std::string& name, const Tensor& tensor, const Shape& wanted, const std::string& source) {
  if (tensor.shape() != wanted)
    fail(source, ": ", quote(name), " has shape ", tensor.shape(), ", the graph wants ", wanted);
  if (tensor.dtype() != DType::kFloat32)
    fail(source, ": ", quote(name), " is ", name_of(tensor.dtype()), ", expected float32");
}

/// What ops find out by themselves while they train, ranges for instance: of another shape it may start anew.
std::set<std::string> observed_variables(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    for (const int k : node->op().traits().updated_inputs)
      if (node->type() != "BatchNorm") names.insert(node->input(k).node->name());
  return names;
}

}  // namespace

Safetensors Session::checkpoint() {
  Safetensors content;
  for (const auto& [name, value] : variables()) content.tensors.emplace(name, value.clone().to(DType::kFloat32));
  for (const auto& [name, value] : slots_) {
    const bool current = content.tensors.contains(name.substr(name.find('/') + 1));
    if (current) content.tensors.emplace(std::string(kOptimizer) + name, value.clone());
  }
  // restore() would refuse it: an update overflowed (that of a variable, or of an optimizer's state).
  for (const auto& [name, tensor] : content.tensors)
    if (!is_finite(tensor))
      throw NonFiniteUpdate(concat("\"", name, "\" is not finite after step ", step_, ": an update has overflowed"));
  content.tensors.emplace(kStep, Tensor::scalar(step_));
  content.tensors.emplace(kQuantizationStep, Tensor::scalar(quantization_step_));
  return content;
}

Session::RestoreReport Session::restore(const Safetensors& content, Restore mode, const std::string& source) {
  const NamedTensors current = variables();
  const std::set<std::string> observed =
      mode == Restore::kByName ? observed_variables(graph_) : std::set<std::string>{};
  RestoreReport report;
  NamedTensors slots;
  std::vector<std::string> surplus;
  for (const auto& [name, tensor] : content.tensors) {
    if (const auto found = current.find(name); found != current.end()) {
      if (tensor.shape() != found->second.shape() && observed.contains(name)) {
        report.fresh.push_back(name);
        report.unused.push_back(name);
        continue;
      }
      require_shape(name, tensor, found->second.shape(), source);
      report.restored.push_back(name);
    } else if (mode == Restore::kExact && name.starts_with(kOptimizer)) {
      const std::string slot = name.substr(kOptimizer.size());
      const auto variable = current.find(slot.substr(slot.find('/') + 1));
      if (variable == current.end())
        fail(source, ": ", quote(name), " is the state of a variable that the graph does not have");
      require_shape(name, tensor, variable->second.shape(), source);
      slots.emplace(slot, tensor.clone());
    } else if (mode == Restore::kExact ? !is_counter(name) : !is_extra(name)) {
      report.unused.push_back(name);
      // In evaluation, ops may do without the state that they had in training: "<node>/<state>".
      const bool op_state = mode == Restore::kVariables && graph_.find(scope_of(name)) != nullptr;
      if (mode != Restore::kByName && !op_state) surplus.push_back(name);
    }
  }
  std::set<std::string> op_states;
  for (const Node* node : graph_.nodes())
    for (const OpState& state : node->op().state()) op_states.insert(state_name(*node, state));
  std::vector<std::string> missing;
  for (const auto& [name, value] : current) {
    if (content.tensors.contains(name)) continue;
    report.fresh.push_back(name);
    if (mode == Restore::kExact || (mode == Restore::kVariables && !op_states.contains(name))) missing.push_back(name);
  }
  if (!missing.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : content.tensors) names.push_back(name);
    const std::string more = missing.size() > 1 ? concat(" (and ", missing.size() - 1, " more)") : "";
    fail(source, ": variable ", quote(missing.front()), " is missing", more, did_you_mean(missing.front(), names));
  }
  if (!surplus.empty())
    fail(source, ": ", quote(surplus.front()), " is not a variable of the graph (", surplus.size(), " such name",
         surplus.size() == 1 ? "" : "s", ")");
  require_finite(content.tensors, source);
  if (mode == Restore::kExact) {
    const std::int64_t step = counter(content, kStep, source);
    quantization_step_ = counter(content, kQuantizationStep, source);
    step_ = step;
    slots_ = std::move(slots);
    training_plans_.clear();
  }
  if (mode == Restore::kByName) {
    step_ = quantization_step_ = 0;
    slots_.clear();
    training_plans_.clear();
  }
  for (const std::string& name : report.restored) values_.at(name).assign(content.tensors.at(name));
  return report;
}

}  // namespace miniqat
