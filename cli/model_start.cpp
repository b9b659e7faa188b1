#include "cli/model_start.h"

#include <tuple>
#include <vector>

#include "cli/notes.h"
#include "importers/onnx/import.h"
#include "training/model_source.h"

namespace miniqat::cli {

using namespace training;

GraphFile read_graph_file(const std::string& path, const std::string& image_size) {
  if (!is_onnx_file(path)) {
    if (!image_size.empty()) refuse_ignored("--image-size", concat(path, ", which is not an ONNX model"));
    return {.graph = read_network(path)};
  }
  importers::ImportOptions options;
  if (!image_size.empty()) std::tie(options.height, options.width) = image_size_from(image_size);
  importers::ImportedModel model = importers::import_onnx(path, options);
  for (std::string& note : model.report.notes) note.insert(0, "note: ");
  return {.graph = std::move(model.graph), .notes = std::move(model.report.notes)};
}

void require_run_or_model(const std::string& run, const TrainFlags& flags, const std::string& dataset) {
  const bool has_model = flags.was_given("model");
  if (run.empty() && !has_model)
    throw MissingArgument(
        "--run is required: RUN or --run RUN, the directory of a float run; or --model MODEL.onnx with --dataset");
  if (!run.empty() && has_model) throw UsageError("give a float run or --model, not both");
  std::vector<const char*> own(kSettingsOfModel.begin(), kSettingsOfModel.end());
  own.insert(own.end(), kReadingSettings.begin(), kReadingSettings.end());
  own.insert(own.end(), {"no_standardise", "task"});
  for (const char* setting : own)
    if (const bool is_for_dataset = !dataset.empty() && setting == std::string_view("skip_broken");
        !has_model && !is_for_dataset && flags.was_given(setting))
      throw UsageError(concat(flag_of(setting), " goes with --model: a float run has its own"));
}

std::shared_ptr<TrainFlags> make_model_flags(Command& command) {
  FlagChanges changes{.only = {kSettingsOfModel.begin(), kSettingsOfModel.end()},
                      .help = {{"model", "an ONNX model with its weights, instead of a float run; needs --dataset"}},
                      .shown_defaults = {{"model", ""}}};
  changes.only.insert({"model", "batch_size"});
  return std::make_shared<TrainFlags>(command, "A model instead of a run", changes);
}

std::optional<TrainSettings> model_instead_of_run(const TrainFlags& flags, const std::string& run,
                                                  const std::string& dataset, const std::string& data_dir) {
  require_run_or_model(run, flags, dataset);
  if (!flags.was_given("model")) {
    if (flags.was_given("batch_size")) throw UsageError("--batch-size goes with --model: a float run has its own");
    return {};
  }
  TrainSettings settings;
  flags.apply(settings);
  settings.dataset = dataset;
  settings.data_dir = data_dir;
  print_note(settle_model(settings, !dataset.empty(), flags.was_given("batch_size")));
  return settings;
}

bool asks_to_skip_broken(const TrainFlags& flags) {
  TrainSettings settings;
  flags.apply(settings);
  return settings.skip_broken;
}

}  // namespace miniqat::cli
