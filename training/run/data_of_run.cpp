#include "training/run/data_of_run.h"

#include <filesystem>

#include "datasets/user_files.h"
#include "training/settings/settings.h"

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

std::vector<std::string> recorded_class_names(const RunDirectory& run) {
  std::error_code failure;
  if (!std::filesystem::exists(run.summary(), failure)) return {};
  const Json summary = read_json(run.summary());
  const auto recorded = summary.find("class_names");
  std::vector<std::string> names;
  if (recorded == summary.end() || !recorded->is_array()) return names;
  for (const Json& name : *recorded)
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names.size() == recorded->size() ? names : std::vector<std::string>();
}

void require_still_there(const std::string& run, const std::string& dataset) {
  std::error_code failure;
  if (datasets::is_path(dataset) && !std::filesystem::exists(dataset, failure))
    fail("the run in ", run, " was trained on ", dataset,
         ", which is not there; if it was moved, give its place with --dataset (eval, verify, calibrate, export, "
         "sensitivity) or put a link where it was");
}

}  // namespace miniqat::training
