#include "training/listing/run_command.h"

#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "training/calibrate/calibration.h"
#include "training/quantize/quantization_plan.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {
namespace {

/// They change nothing that a run computes.
const std::set<std::string> kUnsaid = {"data_dir", "threads", "log_every", "save_every"};

std::string word_of(const Json& value) {
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  return text.find_first_of(" \t\n\"'\\") == std::string::npos && !text.empty() ? text : quote(text);
}

/// " --scales power-of-two", " --float", " --full-range-weights=false".
std::string flag_text(const std::string& setting, const Json& value) {
  if (value == true) return concat(" ", flag_of(setting));
  return concat(" ", flag_of(setting), value == false ? "=" : " ", word_of(value));
}

/// The settings of `json` that `defaults` has with other values.
std::string flags_of(const Json& json, const Json& defaults) {
  std::string text;
  for (const auto& item : json.items()) {
    const auto usual = defaults.find(item.key());
    if (usual != defaults.end() && *usual != item.value() && !item.value().is_null() && !kUnsaid.contains(item.key()))
      text += flag_text(item.key(), item.value());
  }
  return text;
}

/// What a run with the same data set and optimizer has if nothing else is asked for.
Json usual_settings(const Json& config, const std::string& source) {
  TrainSettings given, usual;
  settings_from_json(config, given, source);
  usual.dataset = given.dataset;
  usual.optimizer = given.optimizer;
  resolve(usual);
  Json json = settings_to_json(usual);
  const TrainSettings untouched;
  json["dataset"] = untouched.dataset;
  json["optimizer"] = untouched.optimizer;
  return json;
}

const Json* member(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? &*found : nullptr;
}

std::string source_run(const Json& made) {
  const Json* run = member(made, "run");
  return run == nullptr ? "" : " " + word_of(*run);
}

/// Settings of the calibration that are not its defaults. `calibration`: that of a summary or of a plan.
std::string calibrate_flags(const Json& calibration) {
  return flags_of(calibration, settings_to_json(CalibrateSettings{}));
}

std::string quantize_command(const Json& plan) {
  const Json* training = member(plan, "training");
  if (training == nullptr) return "quantize" + source_run(plan);
  const TrainSettings usual = usual_quantization();
  std::string text = concat("quantize", source_run(plan), flags_of(*training, settings_to_json(usual.rewrite)));
  if (Json calibration = plan.value("calibration", Json::object()); calibration.is_object()) {
    // It is the training's.
    calibration.erase("seed");
    text += calibrate_flags(calibration);
  }
  const Json lengths = {{"epochs", usual.epochs}, {"steps", usual.steps}};
  for (const auto& length : lengths.items())
    if (const Json* value = member(*training, length.key().c_str());
        value != nullptr && *value != 0 && *value != length.value())
      text += flag_text(length.key(), *value);
  return text;
}

}  // namespace

std::string command_of(const RunDirectory& run, const Json& config, const Json& summary) {
  std::error_code failure;
  const Json* calibration = member(summary, "calibration");
  std::string text;
  if (std::filesystem::exists(run.quantization(), failure))
    text = quantize_command(read_json(run.quantization()));
  else if (calibration != nullptr)
    text = concat("calibrate", source_run(*calibration), flags_of(config, settings_to_json(RewriteSettings{})),
                  calibrate_flags(*calibration));
  else
    text = "train" + flags_of(config, usual_settings(config, run.config().string()));
  return member(summary, "reestimation") == nullptr ? text : text + "; reestimate";
}

}  // namespace miniqat::training
