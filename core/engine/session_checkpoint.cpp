#include <algorithm>
#include <set>

#include "core/engine/session.h"
#include "core/engine/training_plan.h"
#include "core/graph/op_interfaces.h"
#include "core/graph/source_ops.h"
#include "core/kernels/finite.h"
#include "core/text/counted.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat {
namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer:";
constexpr std::string_view kTrainingStep = "session:step";
constexpr std::string_view kQuantizationStep = "session:quantization_step";

/// Not a variable: no node's name holds a colon.
bool is_extra(const std::string& name) { return name.find(':') != std::string::npos; }
bool is_counter(const std::string& name) { return name == kTrainingStep || name == kQuantizationStep; }

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

/// Variables that ops find out by themselves while they train, ranges for instance; one of another shape may start
/// anew.
std::set<std::string> observed_variables(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    if (const OpTraits traits = node->op().traits(); traits.updates_start_anew)
      for (const int k : traits.updated_inputs) names.insert(node->input(k).node->name());
  return names;
}

/// The state of an op between its runs, which evaluation does not need: "<node>/<state>".
std::set<std::string> state_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    for (const OpState& state : state_of(node->op())) names.insert(state_name(*node, state));
  return names;
}

/// Says of each tensor of a checkpoint, and of each variable, what becomes of it. Changes nothing.
class Sorting {
 public:
  Sorting(const Graph& graph, NamedTensors current, Session::Restore mode, const std::string& source)
      : graph_(graph), current_(std::move(current)), mode_(mode), source_(source) {
    if (mode == Session::Restore::kByName) observed_ = observed_variables(graph);
  }

  void add(const std::string& name, const Tensor& tensor) {
    if (const auto found = current_.find(name); found != current_.end())
      add_variable(name, tensor, found->second.shape());
    else if (is_exact() && name.starts_with(kOptimizerPrefix))
      add_slot(name, tensor);
    else if (is_exact() ? !is_counter(name) : !is_extra(name))
      add_unused(name);
  }

  /// Which variables the checkpoint lacks; throws when that may not be.
  void find_missing(const NamedTensors& content) {
    const std::set<std::string> op_states = state_names(graph_);
    std::vector<std::string> missing;
    for (const auto& [name, value] : current_) {
      if (content.contains(name)) continue;
      report.fresh.push_back(name);
      if (is_exact() || (mode_ == Session::Restore::kVariables && !op_states.contains(name))) missing.push_back(name);
    }
    if (missing.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : content) names.push_back(name);
    const std::string more = missing.size() > 1 ? concat(" (and ", missing.size() - 1, " more)") : "";
    fail(source_, ": variable ", quote(missing.front()), " is missing", more, did_you_mean(missing.front(), names));
  }

  void require_no_surplus() const {
    if (surplus_.empty()) return;
    fail(source_, ": ", quote(surplus_.front()), " is not a variable of the graph (",
         counted(surplus_.size(), "such name"), ")");
  }

  Session::RestoreReport report;
  /// The optimizer's state.
  NamedTensors slots;

 private:
  bool is_exact() const { return mode_ == Session::Restore::kExact; }

  void add_variable(const std::string& name, const Tensor& tensor, const Shape& wanted) {
    if (tensor.shape() != wanted && observed_.contains(name)) {
      report.fresh.push_back(name);
      report.unused.push_back(name);
      return;
    }
    require_shape(name, tensor, wanted, source_);
    report.restored.push_back(name);
  }

  void add_slot(const std::string& name, const Tensor& tensor) {
    const std::string slot = name.substr(kOptimizerPrefix.size());
    const auto variable = current_.find(slot.substr(slot.find('/') + 1));
    if (variable == current_.end())
      fail(source_, ": ", quote(name), " is the state of a variable that the graph does not have");
    require_shape(name, tensor, variable->second.shape(), source_);
    slots.emplace(slot, tensor.clone());
  }

  void add_unused(const std::string& name) {
    report.unused.push_back(name);
    // In evaluation, ops may do without the state that they had in training.
    const bool op_state = mode_ == Session::Restore::kVariables && graph_.find(scope_of(name)) != nullptr;
    if (mode_ != Session::Restore::kByName && !op_state) surplus_.push_back(name);
  }

  const Graph& graph_;
  const NamedTensors current_;
  const Session::Restore mode_;
  const std::string& source_;
  /// Variables that start anew where the checkpoint has them in another shape.
  std::set<std::string> observed_;
  std::vector<std::string> surplus_;
};

}  // namespace

Safetensors Session::checkpoint() {
  Safetensors content;
  for (const auto& [name, value] : variables()) content.tensors.emplace(name, value.clone().to(DType::kFloat32));
  for (const auto& [name, value] : slots_) {
    const bool current = content.tensors.contains(name.substr(name.find('/') + 1));
    if (current) content.tensors.emplace(std::string(kOptimizerPrefix) + name, value.clone());
  }
  // restore() would refuse it: an update overflowed (that of a variable, or of an optimizer's state).
  for (const auto& [name, tensor] : content.tensors)
    if (!is_finite(tensor))
      throw NonFiniteUpdate(concat("\"", name, "\" is not finite after step ", step_, ": an update has overflowed"));
  content.tensors.emplace(kTrainingStep, Tensor::scalar(step_));
  content.tensors.emplace(kQuantizationStep, Tensor::scalar(quantization_step_));
  return content;
}

Session::RestoreReport Session::restore(const Safetensors& content, Restore mode, const std::string& source) {
  Sorting sorting(graph_, variables(), mode, source);
  for (const auto& [name, tensor] : content.tensors) sorting.add(name, tensor);
  sorting.find_missing(content.tensors);
  sorting.require_no_surplus();
  require_finite(content.tensors, source);
  for (const std::string& name : sorting.report.restored)
    require_variance(graph_, name, content.tensors.at(name), source);
  if (mode == Restore::kExact) {
    const std::int64_t step = counter(content, kTrainingStep, source);
    quantization_step_ = counter(content, kQuantizationStep, source);
    step_ = step;
    slots_ = std::move(sorting.slots);
    training_plans_.clear();
  }
  if (mode == Restore::kByName) {
    step_ = quantization_step_ = 0;
    slots_.clear();
    training_plans_.clear();
  }
  for (const std::string& name : sorting.report.restored) values_.at(name).assign(content.tensors.at(name));
  return std::move(sorting.report);
}

}  // namespace miniqat
