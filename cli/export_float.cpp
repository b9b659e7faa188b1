#include <filesystem>
#include <optional>
#include <utility>

#include "cli/export.h"
#include "cli/model_start.h"
#include "core/engine/session.h"
#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "exporters/onnx/onnx_float.h"
#include "quantize/op_roles.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/init_checkpoint.h"
#include "training/run/output_names.h"
#include "training/run/run_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

/// The exporter's file, or its error with the way to export a quantized network.
std::string onnx_file(const Graph& graph, const NamedTensors& variables, const exporters::OnnxFloatOptions& options) {
  try {
    return exporters::onnx_float(graph, variables, options);
  } catch (const Error& error) {
    for (const Node* node : graph.topological_order())
      if (quantize::is_quantizer(*node))
        fail(error.what(), "; ", describe(*node),
             " is a quantizer, and --format onnx holds the integers of such a network");
    throw;
  }
}

}  // namespace

FloatNetwork float_network(const ExportArguments& arguments) {
  if (arguments.run.empty()) {
    auto [graph, notes] = read_graph_file(arguments.graph, arguments.image_size);
    Session session(graph);
    TrainedVariables variables;
    if (!arguments.checkpoint.empty()) {
      variables = trained_variables(arguments.checkpoint);
      session.restore(read_safetensors(variables.file), Session::Restore::kVariables, variables.file.string());
    } else if (is_onnx_file(arguments.graph)) {
      start_from(arguments.graph, session);
    } else {
      throw UsageError("--graph needs --checkpoint: a graph JSON has no weights");
    }
    if (!variables.note.empty()) notes.push_back(variables.note);
    return {.bytes = onnx_file(graph, session.variables(),
                               {.name = std::filesystem::path(arguments.graph).stem(), .opset = arguments.opset}),
            .name = arguments.graph,
            .notes = std::move(notes)};
  }
  const RunSource run = open_run(arguments.run, arguments.checkpoint);
  Graph graph = read_network(run.directory.eval_graph());
  Session session(graph);
  session.restore(read_safetensors(run.checkpoint), Session::Restore::kVariables, run.checkpoint);
  exporters::OnnxFloatOptions options{
      .name = run.settings.model, .pictures = recorded_input(run), .opset = arguments.opset};
  const Task& task = task_of(run.settings);
  options.class_names = recorded_output_names(run.directory, task);
  if (&task != &classification()) options.task = task.name;
  const auto put = [&](std::optional<Standard>& place, bool of_targets) {
    if (const auto recorded = recorded_standard(run.directory, of_targets)) place = *recorded;
  };
  put(options.input_standard, false);
  if (&task == &regression()) put(options.output_standard, true);
  FloatNetwork network{
      .bytes = onnx_file(graph, session.variables(), options), .name = run.settings.model, .notes = {run.note}};
  for (const auto& [end, standard] :
       {std::pair("input", options.input_standard), std::pair("output", options.output_standard)})
    if (standard)
      network.words +=
          concat(end, ": float32, standardised with ", end, "_mean and ", end, "_std, which the file has\n");
  return network;
}

}  // namespace miniqat::cli
