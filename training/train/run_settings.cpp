#include "training/train/run_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/json.h"
#include "datasets/known_datasets.h"
#include "quantize/quantizers.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/own_copies.h"
#include "training/run/run_source.h"
#include "training/settings/given_settings.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

std::string wanted_quantization(const TrainSettings& settings) {
  // ONNX models are float networks.
  if (is_graph_file(settings.model) && !is_onnx_file(settings.model)) {
    const quantize::Quantization quantization = quantize::quantization_of(read_network(settings.model));
    if (!quantization.is_float()) return quantization.label();
  }
  return quantization_label(settings);
}

void adopt_same_bits(TrainSettings& wanted, const TrainSettings& begun) {
  load_layer_bits(wanted.rewrite);
  if (wanted.rewrite.layer_bits != begun.rewrite.layer_bits)
    throw UsageError(concat("--bits-config: ", wanted.rewrite.bits_config, " differs from the run's own (",
                            begun.rewrite.bits_config.empty() ? "none" : begun.rewrite.bits_config,
                            "); leave it out to resume"));
  wanted.rewrite.bits_config = begun.rewrite.bits_config;
}

/// The file that the run copied, given once more.
void adopt_same_class_weights(TrainSettings& wanted, const TrainSettings& begun) {
  if (wanted.class_weights == begun.class_weights || !has_class_weights_file(wanted) || !has_class_weights_file(begun))
    return;
  const Json given = read_json(wanted.class_weights), own = read_json(begun.class_weights);
  // The copy names the classes, in their order.
  Json numbers = Json::array();
  for (const auto& item : own.items()) numbers.push_back(item.value());
  if (given == numbers || nlohmann::json(given) == nlohmann::json(own)) wanted.class_weights = begun.class_weights;
}

/// What --task auto means on data of one's own, only these can tell: read_networks() looks there.
void adopt_guessed_task(TrainSettings& wanted, const TrainSettings& begun) {
  if (known_task(wanted) != nullptr || wanted.task == begun.task) return;
  wanted.task = begun.task;
  wanted.task_is_guessed = true;
}

/// With what values stand for that leave something open ("auto", 0 threads), for a run with that task.
TrainSettings meant(TrainSettings settings, const Task& task) {
  settings.rewrite.ranges = ranges_for(settings.rewrite.ranges, task);
  resolve(settings);
  if (const Task* known = known_task(settings)) settings.task = known->name;
  return settings;
}

/// Settings that may change in the middle of a run: no step is computed otherwise for them. With shards the number of
/// threads is one of them. Gradients may become float32, otherwise computed: a machine that lacks the kernels of others
/// could not go on.
bool may_differ(std::string_view setting, const TrainSettings& wanted, const TrainSettings& begun) {
  // The pictures must stay as many, whether broken files come or go.
  constexpr std::array<std::string_view, 6> kNames = {"data_dir",   "skip_broken", "log_every",
                                                      "save_every", "epochs",      "steps"};
  if (setting == "gradients") return wanted.gradients == GradientType::kFloat32;
  return std::ranges::find(kNames, setting) != kNames.end() || (setting == "threads" && begun.has_shards());
}

}  // namespace

std::string default_directory(const TrainSettings& settings) {
  std::string name = std::filesystem::path(settings.model).stem().string() + "-" +
                     datasets::short_name(settings.dataset) + "-" + wanted_quantization(settings) + "-seed" +
                     std::to_string(settings.seed);
  for (char& c : name) c = c == ' ' ? '-' : ascii_lower(c);
  return "runs/" + name;
}

/// The right rate of one optimizer is hardly right for another, and a config.json does not say whether anybody chose
/// it.
void require_rate_for(const std::string& former, const TrainSettings& settings, bool rate_given) {
  if (settings.optimizer != former && settings.learning_rate && !rate_given)
    throw UsageError(concat("--optimizer ", settings.optimizer, ": the learning_rate ", *settings.learning_rate,
                            " of --config was for ", former, "; give --learning-rate as well"));
}

TrainSettings begun_settings(const RunDirectory& run) {
  TrainSettings settings = settings_of(run);
  if (!settings.rewrite.bits_config.empty()) settings.rewrite.bits_config = run.bits().string();
  load_layer_bits(settings.rewrite);
  use_own_class_weights(settings, run);
  use_model_copy(settings, run);
  return settings;
}

void use_own_copies(TrainSettings& settings, const std::filesystem::path& config) {
  if (!is_there(config.parent_path() / "train_graph.json")) return;
  const RunDirectory run = RunDirectory::open(config.parent_path());
  if (config.filename() != run.config().filename()) return;
  if (!settings.rewrite.bits_config.empty()) settings.rewrite.bits_config = run.bits().string();
  use_own_class_weights(settings, run);
  use_own_arrays(settings, run);
}

void require_inputs_elsewhere(const TrainSettings& settings, const std::filesystem::path& out) {
  // The files of --config, --bits-config and --class-weights have been read by the time when the run there goes.
  const auto require_elsewhere = [&](const char* flag, const std::string& source) {
    if (is_or_lies_in(source, out))
      throw UsageError(concat("--overwrite would delete ", source, ", which ", flag, " reads: give another --out"));
  };
  require_elsewhere("--init-checkpoint", settings.init_checkpoint);
  if (is_graph_file(settings.model)) require_elsewhere("--model", settings.model);
  if (!settings.data) require_data_elsewhere(settings.dataset, out);
}

void require_same_run(TrainSettings& wanted, const TrainSettings& begun) {
  adopt_same_bits(wanted, begun);
  adopt_same_class_weights(wanted, begun);
  adopt_guessed_task(wanted, begun);
  const Task& task = task_of(begun);
  const TrainSettings meant_now = meant(wanted, task), meant_then = meant(begun, task);
  TrainSettings::visit([&](const char* name, auto access, const char*) {
    if (access(wanted) == access(begun)) return;
    if (may_differ(name, wanted, begun))
      access(wanted) = access(meant_now);
    else if (access(meant_now) == access(meant_then))
      access(wanted) = access(begun);
    else
      throw UsageError(concat(flag_of(name), " differs from the run's own (", shown(field_to_json(access(begun))),
                              "); leave it out to resume"));
  });
}

}  // namespace miniqat::training
