#include <filesystem>

#include "cli/export.h"
#include "cli/model_start.h"
#include "core/engine/session.h"
#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "exporters/onnx/onnx_float.h"
#include "quantize/op_roles.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
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
    Graph graph = read_graph_file(arguments.graph, arguments.image_size);
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
    return {.bytes = onnx_file(graph, session.variables(),
                               {.name = std::filesystem::path(arguments.graph).stem(), .opset = arguments.opset}),
            .name = arguments.graph,
            .note = variables.note};
  }
  const RunSource run = open_run(arguments.run, arguments.checkpoint);
  Graph graph = read_network(run.directory.eval_graph());
  Session session(graph);
  session.restore(read_safetensors(run.checkpoint), Session::Restore::kVariables, run.checkpoint);
  const exporters::OnnxFloatOptions options{.name = run.settings.model,
                                            .pictures = recorded_input(run),
                                            .class_names = recorded_class_names(run.directory),
                                            .opset = arguments.opset};
  return {.bytes = onnx_file(graph, session.variables(), options), .name = run.settings.model, .note = run.note};
}

}  // namespace miniqat::cli
