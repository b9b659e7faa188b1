#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/graph_dot.h"
#include "cli/run_directory.h"
#include "core/error.h"
#include "core/files.h"
#include "core/graph_json.h"
#include "core/source_ops.h"
#include "quantize/fake_quant.h"

namespace miniqat::cli {
namespace {

struct Arguments {
  std::string graph;
  std::string dot;
};

std::string note_of(const Node& node) {
  const auto* quantizer = node.as<quantize::FakeQuant>();
  if (quantizer == nullptr) return "";
  const quantize::FakeQuantAttributes& attributes = quantizer->attributes();
  const char* ranges[] = {"last value", "moving average", "fixed range"};
  return concat(
      attributes.bits, " bits, ", ranges[static_cast<int>(attributes.range)], attributes.narrow_range ? ", narrow" : "",
      attributes.symmetric ? ", symmetric" : "", attributes.per_channel ? ", per channel" : "",
      attributes.delay > 0 ? concat(", delay ", attributes.delay) : "", attributes.is_training ? "" : ", evaluation");
}

std::string count_text(std::int64_t count) { return count == 0 ? "" : std::to_string(count); }

void print_table(const Graph& graph) {
  std::size_t name_width = 4;
  std::size_t type_width = 2;
  for (const Node* node : graph.nodes()) {
    name_width = std::max(name_width, node->name().size());
    type_width = std::max(type_width, node->type().size());
  }
  const auto row = [&](const std::string& name, const std::string& type, const std::string& shape,
                       const std::string& parameters, const std::string& multiply_adds, const std::string& note) {
    const std::string line = concat(name, std::string(name_width - name.size() + 2, ' '), type,
                                    std::string(type_width - std::min(type_width, type.size()) + 2, ' '));
    std::printf("%s%-18s %12s %14s  %s\n", line.c_str(), shape.c_str(), parameters.c_str(), multiply_adds.c_str(),
                note.c_str());
  };
  row("node", "op", "output", "parameters", "multiply-adds", "");
  std::int64_t parameters = 0;
  std::int64_t multiply_adds = 0;
  int quantizers = 0;
  for (const Node* node : graph.topological_order()) {
    const auto* variable = node->as<Variable>();
    const bool trainable = variable != nullptr && variable->attributes().trainable;
    const std::int64_t own = trainable ? node->output_specs()[0].shape.elements() : 0;
    const std::int64_t work = node->op().multiply_adds(node->input_specs());
    parameters += own;
    multiply_adds += work;
    quantizers += node->as<quantize::FakeQuant>() != nullptr ? 1 : 0;
    row(node->name(), std::string(node->type()), node->output_specs()[0].shape.str(), count_text(own), count_text(work),
        note_of(*node));
  }
  std::printf("%zu nodes, %d quantizers, %ld trainable parameters, %ld multiply-adds a run\n", graph.size(), quantizers,
              static_cast<long>(parameters), static_cast<long>(multiply_adds));
}

void inspect(const Arguments& arguments) {
  std::filesystem::path path = arguments.graph;
  if (std::filesystem::is_directory(path)) path = RunDirectory::open(path).train_graph();
  const Graph graph = read_graph(path);
  if (arguments.dot.empty())
    print_table(graph);
  else if (arguments.dot == "-")
    std::printf("%s", graph_to_dot(graph).c_str());
  else
    write_file_atomically(arguments.dot, graph_to_dot(graph));
}

}  // namespace

void add_inspect(CLI::App& program) {
  CLI::App* command = program.add_subcommand("inspect", "Show a graph: nodes, parameters, multiply-adds, quantizers");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("graph", arguments->graph, "graph JSON, or a run directory for its training graph")->required();
  command->add_option("--dot", arguments->dot, "write Graphviz text to this file instead (- prints it)");
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace miniqat::cli
