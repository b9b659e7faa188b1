#include "training/run/data_of_run.h"

#include <filesystem>

#include "core/text/json.h"
#include "datasets/hold_out.h"
#include "datasets/user_files.h"
#include "training/run/validation_part.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

/// The grid that pictures of the run have, as mean and deviation.
datasets::PictureOptions picture_grid(const TrainSettings& settings) {
  if (datasets::is_path(settings.dataset)) return picture_options(settings);
  const datasets::KnownDataset& known = datasets::find_dataset(settings.dataset);
  datasets::PictureOptions options;
  datasets::set_grid(options, known.scale, known.zero_point);
  return options;
}

}  // namespace

datasets::LoadOptions load_options(const TrainedOn& network, const std::string& dataset) {
  datasets::LoadOptions options{.least_classes = network.classes, .class_names = network.class_names};
  if (!datasets::is_path(dataset)) return options;
  options.pictures = picture_grid(network.settings);
  options.skip_broken = network.settings.skip_broken;
  if (dataset != network.settings.dataset)
    datasets::set_shape(options.pictures, {network.images[1], network.images[2], network.images[3]});
  return options;
}

TrainSettings moved_to(const TrainedOn& network, const std::string& dataset) {
  TrainSettings settings = network.settings;
  if (dataset == settings.dataset) return settings;
  const datasets::PictureOptions pictures = load_options(network, dataset).pictures;
  const TrainSettings untouched;
  settings.dataset = dataset;
  settings.image_size = pictures.has_size() ? concat(pictures.height, "x", pictures.width) : untouched.image_size;
  settings.colour = pictures.colour == datasets::Colour::kAuto  ? "auto"
                    : pictures.colour == datasets::Colour::kRgb ? "rgb"
                                                                : "grey";
  settings.mean = pictures.mean;
  settings.deviation = pictures.deviation;
  return settings;
}

Json data_to_json(const datasets::Splits& data, const std::string& dataset) {
  Json json = {{"input_scale", data.train.scale}, {"input_zero_point", data.train.zero_point}};
  if (datasets::is_path(dataset)) json["pictures"] = picture_counts(data);
  if (const std::size_t skipped = data.remarks().skipped.size(); skipped > 0) json["skipped_files"] = skipped;
  if (!data.train.class_names.empty()) json["class_names"] = data.train.class_names;
  return json;
}

Json recorded_of_data(const RunDirectory& run, const char* key) {
  for (const std::filesystem::path& file : {run.summary(), run.dataset()}) {
    std::error_code failure;
    if (!std::filesystem::exists(file, failure)) continue;
    const Json json = read_json(file);
    if (const auto found = json.find(key); found != json.end()) return *found;
  }
  return nullptr;
}

std::vector<std::string> recorded_class_names(const RunDirectory& run) {
  const Json recorded = recorded_of_data(run, "class_names");
  std::vector<std::string> names;
  if (!recorded.is_array()) return names;
  for (const Json& name : recorded)
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names.size() == recorded.size() ? names : std::vector<std::string>();
}

bool is_gone(const std::string& dataset) {
  std::error_code failure;
  return datasets::is_path(dataset) && !std::filesystem::exists(dataset, failure);
}

void require_still_there(const std::string& run, const std::string& dataset, bool has_dataset) {
  if (!is_gone(dataset)) return;
  constexpr const char* kTakers = "eval, verify, predict, run, calibrate, export, sensitivity";
  fail("the run in ", run, " was trained on ", dataset, ", which is not there; if it was moved, ",
       has_dataset ? concat("give its place with --dataset (", kTakers, ") or put a link where it was")
                   : "put a link where it was (ln -s)");
}

Json picture_counts(const datasets::Splits& data) {
  return {{"training", data.train.size()},
          {"validation", data.validation ? data.validation->size() : 0},
          {"test", data.test.size()}};
}

Json recorded_picture_counts(const RunDirectory& run) { return recorded_of_data(run, "pictures"); }

void require_same_pictures(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  const Json former = recorded_picture_counts(run), now = picture_counts(data);
  const auto text = [](const Json& counts) {
    return concat(counts.value("training", 0), " training, ", counts.value("validation", 0), " validation and ",
                  counts.value("test", 0), " test pictures");
  };
  if (former.is_object() && former != now)
    fail(dataset, " has changed since the run began: it has ", text(now), " now, not ", text(former), "; train anew");
}

std::optional<datasets::Splits> moved_data(const RunDirectory& run, const TrainSettings& settings,
                                           const datasets::Splits& data) {
  const Json recorded = recorded_picture_counts(run);
  if (!is_gone(settings.dataset) || recorded.is_null()) return {};
  datasets::Splits parts = data;
  if (!data.train.images.defined()) {
    std::int64_t all = 0;
    for (const char* part : {"training", "validation", "test"})
      if (std::int64_t count = 0; integer_from_json(recorded.value(part, Json(nullptr)), count)) all += count;
    if (data.validation || data.test.size() != all) return {};
    parts = datasets::split_off_test(data.test);
  }
  const bool has_both = settings.validation > 0 && parts.validation;
  if (has_both || settings.validation + settings.batch_size > parts.train.size()) return {};
  parts = with_validation_part(parts, settings);
  if (picture_counts(parts) != recorded) return {};
  return parts;
}

ClassifierOptions classifier_options(const TrainSettings& settings) {
  return {.model = settings.model,
          .model_graph = settings.model_graph,
          .width = settings.width,
          .batch_size = settings.slice_size(),
          .output = settings.output,
          .shards = settings.shards};
}

datasets::Splits load_wanted_data(const TrainSettings& settings) {
  datasets::LoadOptions options{.pictures = picture_options(settings), .skip_broken = settings.skip_broken};
  // The models that have a name are made to the pictures' measure.
  if (is_graph_file(settings.model))
    options.accept = [&](const Shape& example) {
      require_pictures_fit(classifier_options(settings), example, settings.dataset);
    };
  if (settings.data && options.accept) options.accept(settings.data->train.example_shape());
  const datasets::Splits data =
      settings.data ? *settings.data : datasets::load(settings.dataset, settings.data_dir, options);
  return as_usage([&] { return with_validation_part(data, settings); });
}

}  // namespace miniqat::training
