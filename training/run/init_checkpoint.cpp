#include "training/run/init_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/files/files.h"
#include "core/files/safetensors.h"
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

/// Takes out the ranges of weights, which are those of folded weights in the one network and of raw ones in the other,
/// if the run folds batch norms late and the graph does not, or the reverse. Returns their names.
std::vector<std::string> drop_refolded(const RunDirectory& run, const Graph& graph, NamedTensors& tensors) {
  const quantize::Quantization theirs = quantize::quantization_of(read_network(run.train_graph()));
  if (theirs.is_float() || theirs.late == quantize::quantization_of(graph).late) return {};
  std::vector<std::string> dropped;
  for (const Node* node : graph.nodes()) {
    if (node->as<quantize::FakeQuant>() == nullptr || !quantize::quantizes_weights(*node)) continue;
    for (const int end : {1, 2})
      if (const std::string& name = node->input(end).node->name(); tensors.erase(name) > 0) dropped.push_back(name);
  }
  return dropped;
}

/// The numbers of the variables do not depend on the size of the pictures or the steps; a model that leaves it open
/// gets the graph's.
NamedTensors onnx_variables(const std::filesystem::path& path, const Graph& graph) {
  importers::ImportOptions options{.keeps_size = true};
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
                    " of another shape or folding (new and unused) start anew from the first batch: ", again.front(),
                    again.size() == 1 ? "" : ", ...", "\n")) +
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

InitCheckpoint start_from(const std::filesystem::path& path, Session& session) {
  InitCheckpoint start{.source = {}, .names = {}};
  Safetensors content;
  if (is_onnx_file(path.string())) {
    start.source = path;
    content.tensors = onnx_variables(path, session.graph());
  } else {
    TrainedVariables variables = trained_variables(path);
    start.source = variables.file;
    start.note = std::move(variables.note);
    content = read_safetensors(start.source);
  }
  const std::string source = start.source.string();
  std::vector<std::string> refolded;
  // Whoever names a file may have it without the run's graph.
  if (const std::optional<RunDirectory> run = run_of_variables(path);
      run && (std::filesystem::is_directory(path) || is_there(run->train_graph())))
    refolded = drop_refolded(*run, session.graph(), content.tensors);
  start.names = session.restore(content, Session::Restore::kByName, source);
  start.names.unused.insert(start.names.unused.end(), refolded.begin(), refolded.end());
  std::ranges::sort(start.names.unused);
  // A network without variables needs none, of an ONNX model without any.
  const bool nothing_to_do = is_onnx_file(path.string()) && start.names.fresh.empty() && start.names.unused.empty();
  if (start.names.restored.empty() && !nothing_to_do)
    fail(source, ": no tensor has the name of a variable of this model");
  return start;
}

}  // namespace miniqat::training
