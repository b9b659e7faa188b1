#include "training/run/init_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/files/files.h"
#include "core/files/safetensors.h"
#include "core/graph/op_queries.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "importers/onnx/import.h"
#include "quantize/fake_quant.h"
#include "quantize/quantizers.h"
#include "training/model_source.h"
#include "training/run/run_directory.h"
#include "training/run/trained_variables.h"

namespace miniqat::training {
namespace {

constexpr std::size_t kShown = 8;

std::string list_text(const std::string& what, const std::vector<std::string>& names, bool all) {
  const std::size_t shown = all ? names.size() : std::min(names.size(), kShown);
  const std::string head = concat("  ", what, std::string(9 - what.size(), ' '));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += head + printable(names[i]) + "\n";
  if (shown < names.size()) text += concat(head, "... and ", names.size() - shown, " more (--verbose lists all)\n");
  return text;
}

/// The run that variables are of.
struct Source {
  RunDirectory run;
  Graph graph;
  std::int64_t quantization_step = 0;
};

std::optional<Source> read_source(const std::filesystem::path& path, const NamedTensors& tensors) {
  const std::optional<RunDirectory> run = run_of_variables(path);
  // Whoever names a file may have it without the run's graph.
  if (!run || !(std::filesystem::is_directory(path) || is_there(run->train_graph()))) return {};
  Source source{.run = *run, .graph = read_network(run->train_graph())};
  const auto step = tensors.find("session:quantization_step");
  if (step != tensors.end() && step->second.dtype() == DType::kInt64 && step->second.elements() == 1)
    source.quantization_step = *step->second.data<std::int64_t>();
  return source;
}

/// Whether a quantizer has had a range in the run: a learned one has none before its delay.
bool has_begun(const Source& source, const std::string& quantizer) {
  const Node* node = source.graph.find(quantizer);
  return node == nullptr || !quantize::has_learned_variables(*node) ||
         source.quantization_step >= node->as<quantize::FakeQuant>()->delay || source.run.is_calibrated();
}

/// Whether the ends of a quantizer's range are there, and elsewhere than its variables start.
bool is_moved(const Node& node, const NamedTensors& tensors) {
  return node.as<quantize::FakeQuant>() != nullptr && tensors.contains(node.input(1).node->name()) &&
         !quantize::has_initial_range(node, tensors);
}

void drop_range(const Node& quantizer, NamedTensors& tensors, std::vector<std::string>& dropped) {
  for (const int end : {1, 2})
    if (const std::string& name = quantizer.input(end).node->name(); tensors.erase(name) > 0) dropped.push_back(name);
}

/// Takes out the learned ranges that are where their variables start because they have not begun: a run knows that of
/// each, in a file by itself no range has moved then. (Others may lie there, as that of a Relu6.) Adds their names.
void drop_not_begun(const std::optional<Source>& source, const Graph& graph, NamedTensors& tensors,
                    std::vector<std::string>& dropped) {
  const bool some_moved =
      std::ranges::any_of(graph.nodes(), [&](const Node* node) { return is_moved(*node, tensors); });
  for (const Node* node : graph.nodes()) {
    if (!quantize::has_learned_variables(*node) || is_moved(*node, tensors)) continue;
    if (source ? !has_begun(*source, node->name()) : !some_moved) drop_range(*node, tensors, dropped);
  }
}

/// Takes out the ranges of weights, which are those of folded weights in the one network and of raw ones in the other,
/// if the run folds batch norms late and the graph does not, or the reverse. Adds their names.
void drop_refolded(const Source& source, const Graph& graph, NamedTensors& tensors, std::vector<std::string>& dropped) {
  const quantize::Quantization theirs = quantize::quantization_of(source.graph);
  if (theirs.is_float() || theirs.late == quantize::quantization_of(graph).late) return;
  for (const Node* node : graph.nodes())
    if (node->as<quantize::FakeQuant>() != nullptr && quantize::quantizes_weights(*node))
      drop_range(*node, tensors, dropped);
}

/// A run's dampening grows over its own steps, whatever another run has counted.
void drop_dampened_steps(const Graph& graph, NamedTensors& tensors) {
  for (const Node* node : graph.nodes())
    for (const OpState& state : state_of(node->op()))
      if (state.name == "num_dampened") tensors.erase(state_name(*node, state));
}

/// The numbers of the variables do not depend on the size of the pictures or the steps; a model that leaves it open
/// gets the graph's.
NamedTensors onnx_variables(const std::filesystem::path& path, const Graph& graph, const std::string& output) {
  importers::ImportOptions options{.keeps_size = true, .output = output};
  for (const Node* node : graph.nodes()) {
    const Shape& shape = node->output_specs()[0].shape;
    if (node->as<Placeholder>() == nullptr || shape.rank() < 3) continue;
    options.height = shape[1];
    options.width = shape[2];
  }
  return importers::import_onnx(path, options).variables;
}

}  // namespace

std::vector<std::string> InitCheckpoint::anew() const {
  const std::set<std::string> unused(names.unused.begin(), names.unused.end());
  std::vector<std::string> both;
  std::ranges::copy_if(names.fresh, std::back_inserter(both), [&](const auto& name) { return unused.contains(name); });
  return both;
}

std::string InitCheckpoint::text(bool all) const {
  const std::vector<std::string> again = anew();
  // If all names match, there is nothing to look for.
  const bool all_match = names.fresh.empty() && names.unused.empty();
  std::string text =
      concat("From ", printable(source.string()), ": ", counted(names.restored.size(), "variable"), " restored, ",
             names.fresh.size(), " new, ", names.unused.size(), " unused.\n") +
      (again.empty()
           ? ""
           : concat("  ", counted(again.size(), "range"),
                    " of another shape or folding, or not begun (new and unused), start anew from the first batch: ",
                    again.front(), again.size() == 1 ? "" : ", ...", "\n")) +
      (all_match && !all ? "" : list_text("restored", names.restored, all)) + list_text("new", names.fresh, all) +
      list_text("unused", names.unused, all);
  text.pop_back();
  return text;
}

nlohmann::ordered_json InitCheckpoint::json() const {
  nlohmann::ordered_json json = {
      {"source", source.string()}, {"restored", names.restored}, {"new", names.fresh}, {"unused", names.unused}};
  if (const std::vector<std::string> again = anew(); !again.empty()) json["anew"] = again;
  return json;
}

InitCheckpoint start_from(const std::filesystem::path& path, Session& session, const std::string& output) {
  InitCheckpoint start{.source = {}, .names = {}};
  Safetensors content;
  if (is_onnx_file(path.string())) {
    start.source = path;
    content.tensors = onnx_variables(path, session.graph(), output);
  } else {
    TrainedVariables variables = trained_variables(path);
    start.source = variables.file;
    start.note = std::move(variables.note);
    content = read_safetensors(start.source);
  }
  const std::string source = start.source.string();
  const std::optional<Source> run = read_source(path, content.tensors);
  std::vector<std::string> dropped;
  drop_not_begun(run, session.graph(), content.tensors, dropped);
  if (run) drop_refolded(*run, session.graph(), content.tensors, dropped);
  drop_dampened_steps(session.graph(), content.tensors);
  start.names = session.restore(content, Session::Restore::kByName, source);
  start.names.unused.insert(start.names.unused.end(), dropped.begin(), dropped.end());
  std::ranges::sort(start.names.unused);
  // A network without variables needs none, of an ONNX model without any.
  const bool nothing_to_do = is_onnx_file(path.string()) && start.names.fresh.empty() && start.names.unused.empty();
  if (start.names.restored.empty() && !nothing_to_do)
    fail(source, ": no tensor has the name of a variable of this model");
  return start;
}

}  // namespace miniqat::training
