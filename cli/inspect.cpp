#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "cli/commands.h"
#include "cli/display/tables.h"
#include "cli/flags/command_line.h"
#include "cli/inputs.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "core/files/files.h"
#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "quantize/inspect/graph_diff.h"
#include "quantize/inspect/graph_dot.h"
#include "quantize/quantizers.h"
#include "training/model_source.h"
#include "training/run/run_source.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct InspectArguments {
  std::vector<std::string> graphs;
  std::string dot;
  std::string image_size;
  bool diff = false;
};

std::string note_of(const Node& node) {
  const auto* quantizer = node.as<quantize::FakeQuant>();
  return quantizer == nullptr ? "" : quantize::quantizer_text(*quantizer);
}

std::string count_text(std::int64_t count) { return count == 0 ? "" : std::to_string(count); }

/// The blanks between a text and the width of its column.
std::string room(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ');
}

void print_table(const GraphFile& file) {
  const Graph& graph = file.graph;
  std::size_t name_width = 4;
  std::size_t type_width = 2;
  for (const Node* node : graph.nodes()) {
    name_width = std::max(name_width, node->name().size());
    type_width = std::max(type_width, node->type().size());
  }
  const auto row = [&](const std::string& name, const std::string& type, const std::string& shape,
                       const std::string& parameters, const std::string& multiply_adds, const std::string& note) {
    std::string line =
        concat(name, room(name, name_width + 2), type, room(type, type_width + 2), shape, room(shape, 18), " ",
               room(parameters, 12), parameters, " ", room(multiply_adds, 14), multiply_adds, "  ", note);
    // A narrow terminal would show blanks as a line.
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  };
  row("node", "op", "output", "parameters", "multiply-adds", "");
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  for (const Node* node : graph.topological_order()) {
    const auto* variable = node->as<Variable>();
    if (unused.contains(node)) {
      row(node->name(), std::string(node->type()), node->output_specs()[0].shape.str(), "", "", "reaches no output");
      continue;
    }
    const bool trainable = variable != nullptr && variable->trainable;
    const std::int64_t own = trainable ? node->output_specs()[0].shape.elements() : 0;
    const std::int64_t work = multiply_adds_of(node->op(), node->input_specs());
    parameters += own;
    multiply_adds += work;
    row(node->name(), std::string(node->type()), node->output_specs()[0].shape.str(), count_text(own), count_text(work),
        note_of(*node));
  }
  const std::string note = note_on_unused_layers(graph);
  if (!note.empty() && std::ranges::count(file.notes, "note: " + note) == 0) print_note("note: " + note);
  const quantize::Quantization quantization = quantize::quantization_of(graph);
  const std::string label = quantization.is_float() ? "" : concat(" (", quantization.label(), ")");
  std::printf("%s, %s%s, %s, %s a run\n", counted(graph.size(), "node").c_str(),
              counted(quantization.quantizers, "quantizer").c_str(), label.c_str(),
              counted(parameters, "trainable parameter").c_str(), counted(multiply_adds, "multiply-add").c_str());
}

/// A size is for the ONNX models among two graphs.
GraphFile read_graph_or_run(const std::filesystem::path& path, const std::string& image_size, bool one_of_two) {
  if (!std::filesystem::is_directory(path))
    return read_graph_file(path.string(), one_of_two && !is_onnx_file(path.string()) ? "" : image_size);
  if (!image_size.empty() && !one_of_two) refuse_ignored("--image-size", "a run, which has its sizes");
  const RunDirectory run = RunDirectory::open(path);
  // A graph is what a run has from its first moment: it is shown, whatever became of the run.
  return {.graph = read_graph(run.train_graph()), .notes = {unfinished_note(run)}};
}

/// What a run has learned of its quantizers' ranges.
void print_quantizers(const std::filesystem::path& path, const Graph& graph) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) return;
  const std::filesystem::path checkpoint = RunDirectory::open(path).checkpoint();
  if (!is_there(checkpoint)) return;
  try {
    const auto ranges = quantize::quantizer_ranges(graph, read_safetensors(checkpoint).tensors);
    if (!ranges.empty()) std::printf("\n%s", quantizer_table(ranges).c_str());
  } catch (const Error& error) {
    // The graph was shown all the same.
    print_note(concat("note: no ranges: ", error.what()));
  }
}

void inspect(const InspectArguments& arguments) {
  if (arguments.diff && arguments.graphs.size() != 2)
    throw UsageError("--diff takes two graphs, before and after; there is only \"" + arguments.graphs[0] + "\"");
  if (!arguments.diff && arguments.graphs.size() != 1)
    throw UsageError("one graph is shown at a time, \"" + arguments.graphs[1] +
                     "\" is one too many; --diff compares two");
  const std::filesystem::path& shown = arguments.graphs[0];
  require_no_input("--dot", arguments.dot, {shown, shown / "train_graph.json", shown / "eval_graph.json"});
  const auto read = [&](const std::string& path) {
    return read_graph_or_run(path, arguments.image_size, arguments.diff);
  };
  const GraphFile file = read(arguments.graphs[0]);
  const Graph& graph = file.graph;
  if (arguments.diff) {
    const GraphFile after = read(arguments.graphs[1]);
    print_notes(file.notes, arguments.graphs[0]);
    print_notes(after.notes, arguments.graphs[1]);
    std::printf("%s", quantize::graph_diff(graph, after.graph).c_str());
    return;
  }
  print_notes(file.notes);
  if (arguments.dot.empty()) {
    print_table(file);
    print_quantizers(arguments.graphs[0], graph);
  } else if (arguments.dot == "-") {
    std::printf("%s", quantize::graph_to_dot(graph).c_str());
  } else {
    write_file_atomically(arguments.dot, quantize::graph_to_dot(graph));
    std::printf("%s: %s, for Graphviz\n", printable(arguments.dot).c_str(),
                counted(graph.nodes().size(), "node").c_str());
  }
}

}  // namespace

void add_inspect(CommandLine& program) {
  Command command = program.command(
      "inspect", "Show a graph: nodes, parameters, multiply-adds, quantizers; or the changes of a rewrite");
  const auto arguments = std::make_shared<InspectArguments>();
  command
      .option(
          "GRAPH", arguments->graphs,
          "graph JSON, an ONNX model, or a run directory for its training graph and the range, scale and zero point of each quantizer; two graphs, before and after, with --diff")
      .required()
      .takes(1, 2)
      .value_name("")
      .shown_default("");
  const Flag dot = command.option(
      "--dot", arguments->dot,
      "write a picture as Graphviz text to this file instead (- prints it): quantizers coloured by role, scopes boxed");
  command
      .flag("--diff", arguments->diff,
            "compare two graphs instead: nodes added and removed, edges rerouted, attributes and outputs changed")
      .excludes(dot);
  command.option("--image-size", arguments->image_size, kImageSizeHelp);
  command.action([arguments] { inspect(*arguments); });
}

}  // namespace miniqat::cli
