#include "cli/model_start.h"

#include <tuple>
#include <vector>

#include "cli/notes.h"
#include "importers/onnx/import.h"
#include "training/model_source.h"
#include "training/settings/given_settings.h"

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

namespace {

/// A float run has these already; all have flags where a model may take its place.
std::vector<std::string> settings_with_model() {
  std::vector<std::string> names = {"task", "no_standardise"};
  names.insert(names.end(), kSettingsOfModel.begin(), kSettingsOfModel.end());
  names.insert(names.end(), kReadingSettings.begin(), kReadingSettings.end());
  return names;
}

}  // namespace

void require_run_or_model(const std::string& run, const TrainFlags& flags, const std::string& dataset) {
  const bool has_model = flags.was_given("model");
  if (run.empty() && !has_model)
    throw MissingArgument(
        "--run is required: RUN or --run RUN, the directory of a float run; or --model MODEL.onnx with --dataset");
  if (!run.empty() && has_model) throw UsageError("give a float run or --model, not both");
  for (const std::string& setting : settings_with_model())
    if (const bool is_for_dataset = !dataset.empty() && setting == "skip_broken";
        !has_model && !is_for_dataset && flags.was_given(setting))
      throw UsageError(concat(flag_of(setting), " goes with --model: a float run has its own"));
}

std::shared_ptr<TrainFlags> make_model_flags(Command& command) {
  FlagGroup group{
      .heading = "A model instead of a run", .first = {"model", "batch_size", "task", "target"}, .more = {}};
  group.first.insert(group.first.end(), kSettingsOfModel.begin(), kSettingsOfModel.end());
  for (const std::string& name : settings_with_model())
    if (std::ranges::find(group.first, name) == group.first.end()) group.more.push_back(name);
  FlagChanges changes{.only = {group.first.begin(), group.first.end()},
                      .help = {{"model", "an ONNX model with its weights, instead of a float run; needs --dataset"}},
                      .shown_defaults = {{"model", ""}},
                      .groups = {group}};
  changes.only.insert(group.more.begin(), group.more.end());
  return std::make_shared<TrainFlags>(command, group.heading, changes);
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
