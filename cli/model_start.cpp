#include "cli/model_start.h"

#include <tuple>

#include "cli/notes.h"
#include "importers/onnx/import.h"
#include "training/model_source.h"

namespace miniqat::cli {

using namespace training;

Graph read_graph_file(const std::string& path, const std::string& image_size) {
  if (image_size.empty()) return read_network(path);
  if (!is_onnx_file(path)) refuse_ignored("--image-size", concat(path, ", which is not an ONNX model"));
  importers::ImportOptions options;
  std::tie(options.height, options.width) = image_size_from(image_size);
  return importers::import_onnx(path, options).graph;
}

std::shared_ptr<ModelFlags> make_model_flags(Command& command) {
  return std::make_shared<ModelFlags>(command, "A model instead of a run",
                                      FlagChanges{.omitted = {}, .help = {}, .shown_defaults = {{"model", ""}}});
}

std::optional<TrainSettings> model_instead_of_run(const ModelFlags& flags, const std::string& run,
                                                  const std::string& dataset, const std::string& data_dir) {
  require_run_or_model(run, flags, dataset);
  if (!flags.was_given("model")) {
    if (flags.was_given("batch_size")) throw UsageError("--batch-size goes with --model: a float run has its own");
    return {};
  }
  ModelSettings settings;
  flags.apply(settings);
  settings.dataset = dataset;
  settings.data_dir = data_dir;
  print_note(settle_model(settings, !dataset.empty(), flags.was_given("batch_size")));
  return settings;
}

bool asks_to_skip_broken(const ModelFlags& flags) {
  ModelSettings settings;
  flags.apply(settings);
  return settings.skip_broken;
}

}  // namespace miniqat::cli
