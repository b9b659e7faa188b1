#include "training/listing/run_command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text/json.h"
#include "core/text/shell_quote.h"
#include "training/calibrate/calibration.h"
#include "training/calibrate/reestimation.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/run_source.h"
#include "training/run/validation_part.h"
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

/// Whether a run without a validation part has none because somebody said so: what it began from has one.
bool would_inherit_validation(TrainSettings given) {
  if (given.validation > 0) return false;
  try {
    inherit_validation_part(given, {});
  } catch (const Error&) {
  }
  return given.validation > 0;
}

/// What a run with the same data set, optimizer and beginning has if nothing else is asked for.
Json usual_settings(const Json& config, const std::string& source) {
  TrainSettings given, usual;
  settings_from_json(config, given, source);
  usual.dataset = given.dataset;
  usual.optimizer = given.optimizer;
  resolve(usual);
  usual.data_dir.clear();
  // The default does something for few bits only; earlier runs have 0 for it.
  if (given.reestimate == 0 && (given.float_only || !has_few_bits(given.rewrite))) usual.reestimate = 0;
  if (would_inherit_validation(given)) usual.validation = -1;
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
    return recorded_settings(read_json(file), file.string());
  } catch (const Error&) {
    return {};
  }
}

/// {"--model", "net.onnx", "--dataset", "pets"} and more of its pictures, where no run was quantized but a model.
Words model_words(const Json& settings) {
  Json usual;
  const Json untouched = settings_to_json(TrainSettings{});
  for (const char* setting : {"model", "dataset"}) usual[setting] = "";
  for (const char* setting : {"output", "image_size", "colour", "mean", "std", "skip_broken"})
    usual[setting] = untouched[setting];
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
    if (const Json* folder = member(config, "data_dir"); folder && *folder != Json(""))
      usual["data_dir"] = in_float->data_dir;
    if (member(config, "skip_broken") != nullptr) usual["skip_broken"] = in_float->skip_broken;
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
  before.data_dir.clear();
  return before;
}

/// What the training of `quantize` has if nothing is asked for, but for what the pictures and the network decide.
TrainSettings usual_training(const TrainSettings& given, const std::optional<std::string>& source) {
  const TrainSettings before = source ? settings_of(source).value_or(given) : usual_before(given);
  TrainSettings usual = quantization_defaults(before);
  usual.learning_rate = default_rate(given, before);
  if (!source) usual.optimizer = TrainSettings().optimizer;
  return usual;
}

/// The default for few bits is the network's: late with a range per channel behind batch norms, neither without.
void say_folding(const RewriteSettings& given, Detail detail, Json& settings, Json& defaults) {
  if (!has_few_bits(given)) return;
  const bool is_late = given.bn_fold == quantize::BnFold::kLate, is_tf = given.bn_fold == quantize::BnFold::kTf;
  const bool is_usual = given.per_channel ? is_late : is_tf;
  for (const char* setting : {"per_channel", "bn_fold"})
    if (detail == Detail::kWhole || !is_usual)
      defaults[setting] = nullptr;
    else
      settings.erase(setting);
}

/// The default with activations of few bits, where there are residual sums.
void say_sums(const RewriteSettings& given, Detail detail, Json& settings) {
  if (detail == Detail::kBrief && widens_sums(given) && given.sums_bits == kSumsBits) settings.erase("sums_bits");
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
  say_folding(given.rewrite, detail, settings, defaults);
  say_sums(given.rewrite, detail, settings);
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

/// A place at which --resume made a run longer.
struct Lengthening {
  std::int64_t at = 0, steps_before = 0, steps = 0;
};

/// As metrics.jsonl has them: one for each step.
std::vector<Lengthening> lengthenings(const RunDirectory& run) {
  std::vector<Lengthening> found;
  std::ifstream file(run.metrics().path());
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"steps_before\"") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    const auto whole = [&](const char* key) {
      const Json* number = member(json, key);
      return number != nullptr && number->is_number_integer() ? number->get<std::int64_t>() : 0;
    };
    const Lengthening one{.at = whole("step"), .steps_before = whole("steps_before"), .steps = whole("steps")};
    if (one.steps_before <= 0 || one.steps <= one.steps_before) continue;
    if (!found.empty() && found.back().at == one.at)
      found.back().steps = one.steps;
    else
      found.push_back(one);
  }
  return found;
}

/// The lengths of a run in the unit of its settings: epochs, if all lengths are whole epochs.
class LengthFlag {
 public:
  LengthFlag(const Json& config, const std::vector<Lengthening>& changes) {
    const Json *steps = member(config, "steps"), *epochs = member(config, "epochs");
    if (steps == nullptr || *steps != 0 || epochs == nullptr || !epochs->is_number_integer()) return;
    const auto count = epochs->get<std::int64_t>(), total = changes.back().steps;
    if (count <= 0 || total % count != 0) return;
    const std::int64_t epoch = total / count;
    const auto is_whole = [&](const Lengthening& one) {
      return one.steps_before % epoch == 0 && one.steps % epoch == 0;
    };
    if (epoch > 0 && std::ranges::all_of(changes, is_whole)) steps_in_epoch_ = epoch;
  }

  Words of(std::int64_t steps) const {
    return steps_in_epoch_ ? flag_words("epochs", steps / *steps_in_epoch_) : flag_words("steps", steps);
  }

 private:
  std::optional<std::int64_t> steps_in_epoch_;
};

using Commands = std::vector<Words>;

/// A run that became longer takes a command for each of its lengths, all with `out`.
Commands train_commands(const RunDirectory& run, Json config, const std::string& out) {
  const std::string source = run.config().string();
  const Json usual = usual_settings(config, source);
  if (const TrainSettings settings = recorded_settings(config, source); settings.validation > 0)
    config["validation_method"] = field_to_json(settings.validation_method);
  const std::vector<Lengthening> changes = lengthenings(run);
  Commands commands;
  Words words = {"train"};
  if (!changes.empty()) {
    const LengthFlag length(config, changes);
    for (const char* setting : {"steps", "epochs"}) config.erase(setting);
    append(words, flags_of(config, usual, Detail::kWhole));
    append(words, length.of(changes.front().steps_before));
    for (const Lengthening& change : changes) {
      if (change.at < change.steps_before) append(words, flag_words("stop_at", change.at));
      append(words, {"--out", out});
      commands.push_back(std::exchange(words, {"train", "--resume"}));
      append(words, length.of(change.steps));
    }
  } else {
    append(words, flags_of(config, usual, Detail::kWhole));
  }
  const std::optional<std::int64_t> step = last_step(run);
  // Longer, but not by a step yet.
  if (step && !changes.empty() && *step == changes.back().at) return commands;
  if (step) append(words, flag_words("stop_at", *step));
  append(words, {"--out", out});
  commands.push_back(words);
  return commands;
}

/// The command of a run that no single `train` made; none of others.
std::optional<Words> words_of_stages(const RunDirectory& run, const Json& config, const Json& summary, Detail detail) {
  std::error_code failure;
  if (std::filesystem::exists(run.quantization(), failure))
    return quantize_words(read_json(run.quantization()), run.quantization().string(), detail);
  if (const Json* calibration = member(summary, "calibration")) return calibrate_words(*calibration, config, detail);
  return {};
}

/// The words as a shell reads them.
std::string for_shell(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += concat(line.empty() ? "" : " ", shell_quoted(word));
  return line;
}

}  // namespace

std::string command_of(const RunDirectory& run, const Json& config, const Json& summary) {
  Words words = {"train"};
  if (const std::optional<Words> stages = words_of_stages(run, config, summary, Detail::kBrief))
    words = *stages;
  else
    append(words, flags_of(config, usual_settings(config, run.config().string())));
  const std::string text = for_shell(words);
  return member(summary, "reestimation") == nullptr ? text : text + "; reestimate";
}

std::string repeating_command(const RunDirectory& run, const Json& config, const Json& summary,
                              const std::string& out) {
  Commands commands;
  if (std::optional<Words> stages = words_of_stages(run, config, summary, Detail::kWhole)) {
    append(*stages, {"--out", out});
    commands.push_back(*stages);
  } else {
    commands = train_commands(run, config, out);
  }
  if (const Json* made = member(summary, "reestimation")) {
    Words estimate = {"reestimate", out};
    append(estimate, flags_of(*made, settings_to_json(ReestimateSettings{})));
    if (const Json* threads = member(*made, "threads")) append(estimate, flag_words("threads", *threads));
    commands.push_back(estimate);
  }
  std::string line;
  for (const Words& words : commands) line += concat(line.empty() ? "" : " && ", "miniqat ", for_shell(words));
  return line;
}

}  // namespace miniqat::training
