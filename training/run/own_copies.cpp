#include "training/run/own_copies.h"

#include <system_error>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "datasets/known_datasets.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

void use_own_arrays(TrainSettings& settings, const RunDirectory& run) {
  if (std::filesystem::path(settings.dataset).filename() == RunDirectory::kGivenArrays && is_there(run.given_arrays()))
    settings.dataset = std::filesystem::absolute(run.given_arrays()).lexically_normal().string();
}

TrainSettings settings_of(const RunDirectory& run) {
  TrainSettings settings = recorded_settings(read_json(run.config()), run.config().string());
  use_own_arrays(settings, run);
  return settings;
}

void require_data_elsewhere(const std::string& dataset, const std::filesystem::path& directory) {
  std::error_code failure;
  if (datasets::is_path(dataset) &&
      std::filesystem::equivalent(dataset, directory / RunDirectory::kGivenArrays, failure))
    throw UsageError(concat("--overwrite would delete ", dataset, ", the data of the new run: give another --out"));
  require_no_strange_arrays(dataset, directory);
}

void require_no_strange_arrays(const std::string& dataset, const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / RunDirectory::kGivenArrays;
  std::error_code failure;
  if (std::filesystem::path(dataset).filename() == file.filename() && is_there(file) &&
      !is_there(directory / "config.json") && !std::filesystem::equivalent(dataset, file, failure))
    throw UsageError(concat("the new run would read ", file.string(), ", which is there already, instead of ", dataset,
                            ": move it, or give another --out"));
}

void use_own_class_weights(TrainSettings& settings, const RunDirectory& run) {
  if (has_class_weights_file(settings) && is_there(run.class_weights()))
    settings.class_weights = run.class_weights().string();
}

void hand_on_run(const RunDirectory& from, const RunDirectory& to, const Safetensors& checkpoint,
                 const nlohmann::ordered_json& summary) {
  copy_if_there(from.bits(), to.bits());
  copy_if_there(from.class_weights(), to.class_weights());
  copy_if_there(from.init_checkpoint(), to.init_checkpoint());
  copy_if_there(from.model_graph(), to.model_graph());
  copy_if_there(from.train_graph(), to.train_graph());
  copy_if_there(from.eval_graph(), to.eval_graph());
  write_safetensors(to.checkpoint(), checkpoint);
  write_json(to.summary(), summary);
  nlohmann::ordered_json config = read_json(from.config());
  if (!text_at(config, "bits_config").empty()) config["bits_config"] = to.bits().string();
  if (const std::string weights = text_at(config, "class_weights"); !weights.empty() && weights != "balanced")
    config["class_weights"] = to.class_weights().string();
  config["dataset"] = settings_of(from).dataset;
  write_json(to.config(), config);
}

}  // namespace miniqat::training
