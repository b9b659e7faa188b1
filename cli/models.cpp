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
#include "cli/flags/setting_flags.h"
#include "core/graph/graph_json.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
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
  bool count = false;
};

Graph build(const models::Model& model, const ModelsArguments& arguments) {
  Graph graph;
  Shape input = model.input(arguments.batch_size);
  if (const auto side = arguments.image_size) input = {input[0], *side, *side, input[3]};
  const Output images = placeholder(graph, "images", input);
  const std::int64_t outputs = arguments.classes.value_or(model.outputs);
  graph.set_outputs({model.build(graph, images, {.outputs = outputs, .width = arguments.width})});
  return graph;
}

/// Refuses flags that a model cannot follow.
void check(const models::Model& model, const ModelsArguments& arguments) {
  // in_range() lets a NaN pass.
  if (std::isnan(arguments.width)) throw UsageError("--width must be a number");
  if (arguments.image_size && model.image.rank() != 3)
    throw UsageError(concat("--image-size is for pictures; the input of ", model.name, " is ", model.image));
  if (arguments.classes && model.reconstructs)
    throw UsageError(concat("--classes has no effect on ", model.name, ": it gives as many numbers as it takes"));
}

/// In lines below one another, where a terminal is too narrow for one.
std::string in_last_column(std::string_view summary) {
  constexpr std::size_t kBefore = 64, kLeast = 16;
  const std::size_t columns = terminal_columns(stdout).value_or(summary.size() + kBefore);
  const std::size_t width = std::max(columns, kBefore + kLeast) - kBefore;
  return joined(wrapped(summary, width), "\n" + std::string(kBefore, ' '));
}

void list() {
  std::printf("%-17s %-11s %7s %10s %13s  %s\n", "model", "input", "outputs", "parameters", "multiply-adds", "layers");
  for (const models::Model& model : models::model_table()) {
    const models::ModelSize size = models::size_of(build(model, {.batch_size = 1}), 1);
    std::printf("%-17s %-11s %7ld %10ld %13ld  %s\n", std::string(model.name).c_str(), model.image.str().c_str(),
                static_cast<long>(model.outputs), static_cast<long>(size.parameters),
                static_cast<long>(size.multiply_adds), in_last_column(model.summary).c_str());
  }
  std::printf(
      "\nTo begin a network of your own with one of these, write it as graph JSON and\nchange its layers (docs/own-network.md):\n"
      "  miniqat models --model lenet5 --out mine.json\n"
      "  miniqat inspect mine.json\n"
      "  miniqat train --model mine.json\n");
}

const models::Model& model_of(const ModelsArguments& arguments) {
  const models::Model& model = as_usage([&]() -> const models::Model& { return models::find_model(arguments.model); });
  check(model, arguments);
  return model;
}

void print_counts(const models::Model& model, ModelsArguments arguments) {
  arguments.batch_size = 1;
  const Graph graph = as_usage([&] { return build(model, arguments); });
  const models::ParameterCounts counts = models::count_parameters(model, graph);
  std::printf("%-17s %12ld %12ld %12ld %14ld\n", std::string(model.name).c_str(), static_cast<long>(counts.trained),
              static_cast<long>(counts.folded), static_cast<long>(counts.keras),
              static_cast<long>(models::size_of(graph, 1).multiply_adds));
}

void count(const ModelsArguments& arguments) {
  const models::Model* const only = arguments.model.empty() ? nullptr : &model_of(arguments);
  std::printf("%-17s %12s %12s %12s %14s\n", "model", "trained", "folded", "Keras", "multiply-adds");
  for (const models::Model& model : models::model_table())
    if (only == nullptr || only == &model) print_counts(model, arguments);
  std::printf(
      "\ntrained: what an optimizer updates. folded: weights and biases as integers have them, batch norms in them.\n"
      "Keras: with moving statistics, and the biases that a reference network has before its batch norms.\n");
}

void write_graphs(const ModelsArguments& arguments) {
  require_ending("--out", arguments.out, {".json"});
  const models::Model& model = model_of(arguments);
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
  const Flag out = command.option("--out", arguments->out, "the file to write; default: printed").needs(model);
  const Flag batch_size =
      command.option("--batch-size", arguments->batch_size, "examples a batch").in_range(1, 65536).needs(model);
  command
      .option(
          "--image-size", arguments->image_size,
          "height and width of the pictures; default: the published ones. At most 64: MobileNets begin with stride 1, not 2")
      .in_range(1, 4096)
      .needs(model);
  command.option("--classes", arguments->classes, "classes to tell apart, or other outputs; default: as published")
      .in_range(1, 100000)
      .needs(model);
  command.option("--width", arguments->width, "multiplies the channels").in_range(0.01, 16.0).needs(model);
  command
      .flag("--count", arguments->count,
            "count parameters in three ways: trained, folded, and as Keras and published figures do")
      .excludes(out)
      .excludes(batch_size);
  command.action([arguments] {
    if (arguments->count) return count(*arguments);
    arguments->model.empty() ? list() : write_graphs(*arguments);
  });
}

}  // namespace miniqat::cli
