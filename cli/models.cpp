#include "models/models.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "core/graph/graph_json.h"
#include "core/graph/source_ops.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct ModelsArguments {
  std::string model = {};
  std::string out = {};
  std::int64_t batch_size = 128;
  /// The published ones where left out.
  std::optional<std::int64_t> image_size = {};
  std::optional<std::int64_t> classes = {};
  double width = 1.0;
};

Graph build(const models::Model& model, const ModelsArguments& arguments) {
  Graph graph;
  const std::int64_t height = arguments.image_size.value_or(model.image[0]);
  const std::int64_t width = arguments.image_size.value_or(model.image[1]);
  const Output images = placeholder(graph, "images", {arguments.batch_size, height, width, model.image[2]});
  const std::int64_t classes = arguments.classes.value_or(model.classes);
  graph.set_outputs({model.build(graph, images, {.classes = classes, .width = arguments.width})});
  return graph;
}

/// In lines below one another, where a terminal is too narrow for one.
std::string in_last_column(std::string_view summary) {
  constexpr std::size_t kBefore = 64, kLeast = 16;
  const std::size_t columns = terminal_columns(stdout).value_or(summary.size() + kBefore);
  const std::size_t width = std::max(columns, kBefore + kLeast) - kBefore;
  return joined(wrapped(summary, width), "\n" + std::string(kBefore, ' '));
}

void list() {
  std::printf("%-12s %-12s %8s %12s %14s  %s\n", "model", "input", "classes", "parameters", "multiply-adds", "layers");
  for (const models::Model& model : models::model_table()) {
    const models::ModelSize size = models::size_of(build(model, {.batch_size = 1}), 1);
    std::printf("%-12s %-12s %8ld %12ld %14ld  %s\n", std::string(model.name).c_str(), model.image.str().c_str(),
                static_cast<long>(model.classes), static_cast<long>(size.parameters),
                static_cast<long>(size.multiply_adds), in_last_column(model.summary).c_str());
  }
  std::printf(
      "\nTo begin a network of your own with one of these, write it as graph JSON and\n"
      "change its layers (docs/own-network.md):\n"
      "  miniqat models --model lenet5 --out mine.json\n"
      "  miniqat inspect mine.json\n"
      "  miniqat train --model mine.json\n");
}

void write_graphs(const ModelsArguments& arguments) {
  // in_range() lets a NaN pass.
  if (std::isnan(arguments.width)) throw UsageError("--width must be a number");
  const models::Model& model = as_usage([&]() -> const models::Model& { return models::find_model(arguments.model); });
  const Graph graph = as_usage([&] { return build(model, arguments); });
  if (arguments.out.empty()) {
    std::printf("%s", graph_to_json(graph).c_str());
    return;
  }
  write_graph(arguments.out, graph);
  std::printf("%s: %s, %s, %s; images %s\n", printable(arguments.out).c_str(), std::string(model.name).c_str(),
              counted(graph.nodes().size(), "node").c_str(),
              counted(models::size_of(graph, arguments.batch_size).parameters, "parameter").c_str(),
              graph.at("images").output_specs()[0].shape.str().c_str());
}

}  // namespace

void add_models(CommandLine& program) {
  Command command = program.command("models", "List the models, or write one as graph JSON");
  const auto arguments = std::make_shared<ModelsArguments>();
  const Flag model = command.option("--model", arguments->model, "write this model's graph");
  command.option("--out", arguments->out, "the file to write; default: printed").needs(model);
  command.option("--batch-size", arguments->batch_size, "pictures a batch").in_range(1, 65536).needs(model);
  command
      .option(
          "--image-size", arguments->image_size,
          "height and width of the pictures; default: the published ones. At most 64: MobileNets begin with stride 1, not 2")
      .in_range(1, 4096)
      .needs(model);
  command.option("--classes", arguments->classes, "classes to tell apart; default: as published")
      .in_range(1, 100000)
      .needs(model);
  command.option("--width", arguments->width, "multiplies the channels").in_range(0.01, 16.0).needs(model);
  command.action([arguments] { arguments->model.empty() ? list() : write_graphs(*arguments); });
}

}  // namespace miniqat::cli
