#include "training/listing/run_command.h"

#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "training/calibrate/calibration.h"
#include "training/calibrate/reestimation.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {
namespace {

using Words = std::vector<std::string>;

enum class Detail {
  /// What tells runs apart.
  kBrief,
  /// All that makes the run again, but for its --out.
  kWhole,
};

/// They tell no network from another.
const std::set<std::string> kUnsaid = {"data_dir", "threads", "log_every", "save_every"};

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

/// {"--scales", "power-of-two"}, {"--float"}, {"--full-range-weights=false"}.
Words flag_words(const std::string& setting, const Json& value) {
  const std::string flag = flag_of(setting), text = value.is_string() ? value.get<std::string>() : value.dump();
  if (value == true) return {flag};
  if (value == false || text.starts_with('-')) return {concat(flag, "=", text)};
  return {flag, text};
}

/// The settings of `json` that `defaults` has with other values.
Words flags_of(const Json& json, const Json& defaults, Detail detail = Detail::kBrief) {
  Words words;
  for (const auto& item : json.items()) {
    if (detail == Detail::kBrief && kUnsaid.contains(item.key())) continue;
    const auto usual = defaults.find(item.key());
    if (usual != defaults.end() && *usual != item.value() && !item.value().is_null())
      append(words, flag_words(item.key(), item.value()));
  }
  return words;
}

/// What a run with the same data set and optimizer has if nothing else is asked for.
Json usual_settings(const Json& config, const std::string& source) {
  TrainSettings given, usual;
  settings_from_json(config, given, source);
  usual.dataset = given.dataset;
  usual.optimizer = given.optimizer;
  resolve(usual);
  const TrainSettings untouched;
  usual.dataset = untouched.dataset;
  usual.optimizer = untouched.optimizer;
  usual.threads = untouched.threads;
  return settings_to_json(usual);
}

const Json* member(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? &*found : nullptr;
}

std::optional<std::string> source_run(const Json& made) {
  const Json* run = member(made, "run");
  if (run == nullptr || !run->is_string()) return {};
  return run->get<std::string>();
}

/// Those of the run that this one was made from; none if it is not there any more.
std::optional<TrainSettings> settings_of(const std::optional<std::string>& run) {
  if (!run) return {};
  const std::filesystem::path file = std::filesystem::path(*run) / "config.json";
  std::error_code failure;
  if (!std::filesystem::exists(file, failure)) return {};
  try {
    TrainSettings settings;
    settings_from_json(read_json(file), settings, file.string());
    return settings;
  } catch (const Error&) {
    return {};
  }
}

/// {"--model", "net.onnx", "--dataset", "pets"} and more of its pictures, where no run was quantized but a model.
Words model_words(const Json& settings) {
  Json usual;
  const Json untouched = settings_to_json(TrainSettings{});
  for (const char* setting : {"model", "dataset"}) usual[setting] = "";
  for (const char* setting : {"image_size", "colour", "mean", "std"}) usual[setting] = untouched[setting];
  return flags_of(settings, usual);
}

/// Settings of the calibration that are not its defaults. `calibration`: that of a summary or of a plan.
Words calibration_flags(const Json& calibration) {
  return flags_of(calibration, settings_to_json(CalibrateSettings{}));
}

Words calibrate_words(const Json& calibration, const Json& config, Detail detail) {
  const std::optional<std::string> source = source_run(calibration);
  Words words = {"calibrate"};
  if (source) words.push_back(*source);
  if (member(calibration, "model") != nullptr) {
    append(words, model_words(config));
    append(words, flags_of(config, {{"batch_size", TrainSettings().batch_size}, {"data_dir", ""}}, detail));
  }
  if (const std::optional<TrainSettings> in_float = settings_of(source)) {
    Json usual = {{"dataset", in_float->dataset}};
    if (const Json* folder = member(config, "data_dir"); folder && *folder != "")
      usual["data_dir"] = in_float->data_dir;
    append(words, flags_of(config, usual, detail));
  }
  append(words, flags_of(config, settings_to_json(RewriteSettings{})));
  append(words, calibration_flags(calibration));
  if (const Json* threads = member(config, "threads"); threads && detail == Detail::kWhole)
    append(words, flag_words("threads", *threads));
  return words;
}

/// What takes the place of a float run's settings before a model is quantized.
TrainSettings usual_before(const TrainSettings& given) {
  TrainSettings before;
  before.model = given.model;
  before.dataset = given.dataset;
  before.optimizer = given.optimizer;
  resolve(before);
  return before;
}

/// What the training of `quantize` has if nothing is asked for, but for what the pictures and the network decide.
TrainSettings usual_training(const TrainSettings& given, const std::optional<std::string>& source) {
  const TrainSettings before = source ? settings_of(source).value_or(given) : usual_before(given);
  TrainSettings usual = quantization_defaults(before);
  usual.learning_rate = default_rate(given.optimizer, before);
  if (!source) usual.optimizer = TrainSettings().optimizer;
  return usual;
}

Words quantize_words(const Json& plan, const std::string& file, Detail detail) {
  const std::optional<std::string> source = source_run(plan);
  Words words = {"quantize"};
  if (source) words.push_back(*source);
  const Json* training = member(plan, "training");
  if (training == nullptr) return words;
  if (!source) append(words, model_words(*training));
  TrainSettings given;
  settings_from_json(*training, given, file);
  const TrainSettings usual = usual_training(given, source);
  Json settings = settings_to_json(given), defaults = settings_to_json(usual);
  for (const std::string& setting : settings_of_float_run()) settings.erase(setting);
  // Without the pictures and the network nobody knows whether these are the defaults.
  const bool is_whole = detail == Detail::kWhole;
  if (given.validation == 0 || (!is_whole && usual.validation == 0)) settings.erase("validation");
  if (is_whole)
    defaults["reestimate"] = nullptr;
  else if (given.reestimate == 0)
    settings.erase("reestimate");
  // Steps come before epochs.
  if (given.steps != 0) settings.erase("epochs");
  if (Json calibration = plan.value("calibration", Json::object()); calibration.is_object()) {
    // It is the training's.
    calibration.erase("seed");
    append(words, calibration_flags(calibration));
  }
  append(words, flags_of(settings, defaults, detail));
  return words;
}

/// The step to which a run has come that was stopped or killed; none for one that ends by itself.
std::optional<std::int64_t> last_step(const RunDirectory& run) {
  if (unfinished_note(run).empty()) return {};
  const std::int64_t step = checkpointed_step(run).value_or(0);
  return step == 0 || !run.metrics().failure_after(step).empty() ? std::nullopt : std::optional(step);
}

Words train_words(const RunDirectory& run, const Json& config, Detail detail) {
  Words words = {"train"};
  append(words, flags_of(config, usual_settings(config, run.config().string()), detail));
  if (detail == Detail::kWhole)
    if (const std::optional<std::int64_t> step = last_step(run)) append(words, flag_words("stop_at", *step));
  return words;
}

Words words_of(const RunDirectory& run, const Json& config, const Json& summary, Detail detail) {
  std::error_code failure;
  if (std::filesystem::exists(run.quantization(), failure))
    return quantize_words(read_json(run.quantization()), run.quantization().string(), detail);
  if (const Json* calibration = member(summary, "calibration")) return calibrate_words(*calibration, config, detail);
  return train_words(run, config, detail);
}

/// For people.
std::string brief(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_of(" \t\n\"'\\") == std::string::npos;
    line += concat(line.empty() ? "" : " ", is_plain ? word : quote(word));
  }
  return line;
}

/// For a shell.
std::string for_shell(const Words& words) {
  std::string line = "miniqat";
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_not_of(
                                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "0123456789_@%+=:,./-") == std::string::npos;
    if (is_plain) {
      line += " " + word;
      continue;
    }
    line += " '";
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += "'";
  }
  return line;
}

}  // namespace

std::string command_of(const RunDirectory& run, const Json& config, const Json& summary) {
  const std::string text = brief(words_of(run, config, summary, Detail::kBrief));
  return member(summary, "reestimation") == nullptr ? text : text + "; reestimate";
}

std::string repeating_command(const RunDirectory& run, const Json& config, const Json& summary,
                              const std::string& out) {
  Words words = words_of(run, config, summary, Detail::kWhole);
  append(words, {"--out", out});
  const Json* made = member(summary, "reestimation");
  if (made == nullptr) return for_shell(words);
  Words estimate = {"reestimate", out};
  append(estimate, flags_of(*made, settings_to_json(ReestimateSettings{})));
  if (const Json* threads = member(*made, "threads")) append(estimate, flag_words("threads", *threads));
  return concat(for_shell(words), " && ", for_shell(estimate));
}

}  // namespace miniqat::training
