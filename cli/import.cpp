#include "importers/onnx/import.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <tuple>

#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "cli/inputs.h"
#include "core/files/files.h"
#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "training/model_source.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct ImportArguments {
  std::string model;
  std::string out;
  std::int64_t batch_size = 0;
  std::string image_size;
  std::string output;
};

void print_report(const importers::ImportReport& report) {
  std::vector<TableLine> lines = {{"op", "name", "becomes"}};
  for (const importers::ImportedNode& node : report.nodes)
    lines.push_back({printable(shortened(node.op)), printable(shortened(node.name)), node.becomes});
  std::printf("%s", aligned(lines, 3).c_str());
  for (const std::string& note : report.notes) std::printf("note: %s\n", note.c_str());
}

void keep_output(importers::ImportedModel& model, const ImportArguments& arguments) {
  try {
    choose_output(model.graph, model.output_names, arguments.output);
  } catch (const Error& error) {
    fail(printable(arguments.model), ": ", error.what());
  }
  std::erase_if(model.variables, [&](const auto& named) { return model.graph.find(named.first) == nullptr; });
  model.report.keep_nodes_of(model.graph);
}

void import(const ImportArguments& arguments) {
  const std::filesystem::path out = arguments.out;
  std::error_code failure;
  if (is_there(out / "config.json"))
    fail(printable(out.string()), " holds a config.json, as a run does: give another --out");
  const std::filesystem::path weights_file = out / "weights.safetensors", graph_file = out / "graph.json",
                              report_file = out / "import.json";
  for (const std::filesystem::path& file : {weights_file, graph_file, report_file}) {
    require_no_link(file);
    require_no_input("--out", file, {arguments.model});
  }
  importers::ImportOptions options{.batch_size = arguments.batch_size, .output = arguments.output};
  if (!arguments.image_size.empty()) std::tie(options.height, options.width) = image_size_from(arguments.image_size);
  importers::ImportedModel model = importers::import_onnx(arguments.model, options);
  if (!arguments.output.empty()) keep_output(model, arguments);
  std::filesystem::create_directories(out, failure);
  if (failure) fail(printable(out.string()), ": ", failure.message());
  // What cannot be written as text must not leave half a network behind.
  const std::string graph = graph_to_json(model.graph), report = model.report.json().dump(2) + "\n";
  write_safetensors(weights_file, {.tensors = model.variables, .metadata = {}});
  write_file_atomically(graph_file, graph);
  write_file_atomically(report_file, report);
  print_report(model.report);
  std::int64_t numbers = 0;
  for (const auto& [name, tensor] : model.variables) numbers += tensor.elements();
  std::printf("%s of opset %lld: %s, %s in %s\n", counted(model.report.nodes.size(), "node").c_str(),
              static_cast<long long>(model.report.opset), counted(model.variables.size(), "variable").c_str(),
              counted(numbers, "number").c_str(), printable(out.string()).c_str());
}

}  // namespace

void add_import(CommandLine& program) {
  Command command = program.command(
      "import", "Read an ONNX model: write a graph JSON, its weights, and a report of what each node became");
  const auto arguments = std::make_shared<ImportArguments>();
  command
      .option("model", arguments->model,
              concat("the ONNX file, of opset ", importers::kOldestOpset, " to ", importers::kNewestOpset))
      .required()
      .value_name("MODEL.onnx");
  command.option("--out", arguments->out, "the directory for graph.json, weights.safetensors and import.json; created")
      .required();
  command
      .option("--batch-size", arguments->batch_size,
              "the batch of the graph; default: the file's, or 128 where it is left open")
      .in_range(1, 65536)
      .shown_default("");
  command.option("--image-size", arguments->image_size,
                 "height and width of images where the file leaves them open: HxW, or one number for both");
  command.option("--output", arguments->output,
                 "of several outputs the only one to keep, by its name in the file or in the graph; default: all");
  command.action([arguments] { import(*arguments); });
}

}  // namespace miniqat::cli
