#include "training/quantize/quantization_plan.h"

#include <algorithm>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "quantize/rewrite/layer_patterns.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/run/data_of_run.h"
#include "training/run/own_copies.h"
#include "training/run/run_source.h"
#include "training/settings/given_settings.h"
#include "training/settings/optimizers.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;

std::int64_t default_validation(const TrainSettings& settings, const FloatRun& run) {
  const datasets::Splits data = load_data(run, settings.dataset, settings.data_dir).splits;
  if (data.validation) return 0;
  const std::int64_t pictures = data.train.size();
  return std::max<std::int64_t>(pictures / kValidationShare, 1);
}

/// The fewest bits of any layer, where all have `all` bits but for those that have their own.
std::int64_t fewest_bits(std::int64_t all, const std::vector<quantize::LayerBits>& layers,
                         std::optional<int> quantize::LayerBits::*own) {
  for (const quantize::LayerBits& layer : layers) all = std::min<std::int64_t>(all, (layer.*own).value_or(all));
  return all;
}

std::int64_t fewest_weight_bits(const RewriteSettings& settings) {
  const std::int64_t all =
      std::min<std::int64_t>(settings.weight_bits, settings.ends_bits.value_or(settings.weight_bits));
  return fewest_bits(all, settings.layer_bits, &quantize::LayerBits::weight_bits);
}

std::int64_t fewest_activation_bits(const RewriteSettings& settings) {
  return fewest_bits(settings.activation_bits, settings.layer_bits, &quantize::LayerBits::activation_bits);
}

constexpr std::int64_t kSumsBits = 8;

/// Residual sums keep kSumsBits in a network that has some, unless the flags in `given` say otherwise: with activations
/// of 4 bits and fewer, in some layer at least, and no more activation_bits than kSumsBits, beside which a rewrite
/// refuses them. docs/low-bits.md has the measurements. A layer's own `sums_bits` comes first.
void choose_sums(RewriteSettings& settings, const FloatRun& run, const std::set<std::string>& given) {
  if (given.contains("sums_bits") || settings.activation_bits > kSumsBits) return;
  if (fewest_activation_bits(settings) > quantize::kFewBits) return;
  if (!quantize::ResidualSums(run.evaluation.graph).empty()) settings.sums_bits = kSumsBits;
}

double default_rate(const TrainSettings& settings, const TrainSettings& in_float) {
  const double known = default_learning_rate(settings);
  const double rate = settings.optimizer == in_float.optimizer ? peak_rate(in_float) : known;
  const std::int64_t bits = std::min(fewest_weight_bits(settings.rewrite), fewest_activation_bits(settings.rewrite));
  return bits <= 2 ? rate : kRateShare * rate;
}

const Json& part_of(const Json& json, const char* key, const std::string& source) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) fail(source, ": \"", key, "\" is missing");
  return *found;
}

}  // namespace

TrainSettings usual_quantization() {
  TrainSettings settings;
  settings.epochs = 5;
  return settings;
}

const std::set<std::string>& settings_of_float_run() {
  static const std::set<std::string> kNames = {
      "model", "width",       "output", "dataset",     "image_size",      "colour",     "mean",
      "std",   "skip_broken", "float",  "quant_delay", "init_checkpoint", "no_shuffle", "validation_method"};
  return kNames;
}

void choose_folding(RewriteSettings& settings, const FloatRun& run, const std::set<std::string>& given) {
  if (fewest_weight_bits(settings) > quantize::kFewBits || !why_none_updates(run.training.graph, 0).empty()) return;
  if (!given.contains("per_channel")) settings.per_channel = true;
  if (given.contains("bn_fold")) return;
  const auto has_own = [](const quantize::LayerBits& layer) { return layer.per_channel.value_or(true); };
  const bool all_channels = settings.per_channel && std::ranges::all_of(settings.layer_bits, has_own);
  const bool can_be_late = all_channels && settings.scales == quantize::ScaleChoice::kAny;
  settings.bn_fold = can_be_late ? quantize::BnFold::kLate : quantize::BnFold::kSingle;
}

TrainSettings quantization_defaults(const FloatRun& run) {
  const TrainSettings usual = usual_quantization();
  TrainSettings settings = run.settings;
  settings.float_only = false;
  settings.rewrite = usual.rewrite;
  settings.arithmetic = usual.arithmetic;
  settings.gradients = usual.gradients;
  settings.compute = usual.compute;
  settings.epochs = usual.epochs;
  settings.steps = 0;
  settings.learning_rate.reset();
  settings.scale_learning_rate = usual.scale_learning_rate;
  settings.range_learning_rate = usual.range_learning_rate;
  settings.dampening = usual.dampening;
  settings.schedule = usual.schedule;
  settings.warmup_steps = usual.warmup_steps;
  settings.schedule_every = usual.schedule_every;
  settings.schedule_factor = usual.schedule_factor;
  settings.reestimate = why_none_updates(run.training.graph, 0).empty() ? kEstimateBatches : 0;
  settings.threads = 0;
  return settings;
}

FloatRun float_source(const QuantizationPlan& plan) {
  const std::string& model = plan.training.model;
  if (plan.run.empty() && model_hash(model) != plan.source_hash)
    fail(
        model,
        ", or a file of its weights, has changed since the run began; begin anew with another --out, or with --overwrite");
  if (plan.run.empty()) return read_float_model(plan.training);
  FloatRun run = read_float_run(plan.run);
  if (!plan.source_hash.empty() && variables_hash(run.checkpoint_name) != plan.source_hash)
    fail("the float run in ", plan.run,
         " has changed since this one began; begin anew with another --out, or with --overwrite");
  return run;
}

bool has_seen_validation(const FloatRun& run) { return run.is_run() && run.settings.validation == 0; }

void complete(TrainSettings& settings, const FloatRun& run) {
  if (run.is_run()) require_still_there(run.path, run.settings.dataset, false);
  if (run.is_run() && !has_seen_validation(run) && settings.validation != run.settings.validation)
    throw UsageError(concat("--validation ", settings.validation, ": the float run has a validation part of ",
                            run.settings.validation, " ", noun_of(RunDirectory::open(run.path)),
                            "s, and has trained with the others; leave it out"));
  if (const std::string why = why_none_updates(run.training.graph, 0);
      settings.reestimate.value_or(0) > 0 && !why.empty())
    throw UsageError(concat("--reestimate: ", run.is_run() ? "the run in --run" : settings.model, " ", why));
  if (settings.validation == 0) settings.validation = default_validation(settings, run);
  if (!settings.learning_rate) settings.learning_rate = default_rate(settings, run.settings);
  resolve(settings);
}

void settle(QuantizationPlan& plan, const FloatRun& source, const std::set<std::string>& given) {
  plan.source_hash = source.is_run() ? variables_hash(source.checkpoint_name) : model_hash(source.settings.model);
  TrainSettings& training = plan.training;
  training.dataset = source.settings.dataset;
  if (given.contains("validation") && training.validation < 1)
    throw UsageError(concat("--validation must be at least 1, got ", training.validation));
  load_layer_bits(training.rewrite);
  training.rewrite.ranges = ranges_for(training.rewrite.ranges, *source.evaluation.task);
  choose_folding(training.rewrite, source, given);
  choose_sums(training.rewrite, source, given);
  check(training);
  complete(training, source);
  plan.calibrate.seed = training.seed;
}

fs::path calibrated_in(const RunDirectory& run) { return run.path() / "calibrated"; }
fs::path trained_in(const RunDirectory& run) { return run.path() / "trained"; }

std::optional<fs::path> quantization_of_trained(const RunDirectory& stage) {
  const fs::path given = fs::absolute(stage.path()).lexically_normal();
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  if (folder.filename() != "trained" || !is_there(folder.parent_path() / "quantize.json")) return std::nullopt;
  return folder.parent_path();
}

RunDirectory resumed_training(const fs::path& folder) {
  const std::string word = shell_path(require_name(folder));
  if (is_there(folder / "quantize.json"))
    throw UsageError(concat(
        "--resume: ", folder.string(),
        " holds a run of quantize, whose results are in quantize.json; miniqat quantize --resume --out ", word,
        " goes on if it was stopped, and miniqat train --init-checkpoint ", word, " begins a longer training from it"));
  RunDirectory run = RunDirectory::resume(folder);
  if (run.is_calibrated())
    throw UsageError(
        concat("--resume: the run in ", folder.string(),
               " was calibrated, not trained: there is nothing to go on with; miniqat train --init-checkpoint ", word,
               " begins a training from it"));
  return run;
}

void require_own_length(const RunDirectory& run, const TrainSettings& wanted) {
  const std::optional<fs::path> whole = quantization_of_trained(run);
  for (const char* length : {"epochs", "steps"})
    if (whole && wanted.given.contains(length))
      throw UsageError(concat(flag_of(length), ": ", run.path().string(),
                              " holds the training of the run of quantize in ", whole->string(),
                              ", whose table would no longer fit"));
}

RunDirectory new_quantization(const fs::path& path, RunDirectory::Existing existing) {
  const std::string advice = "give another --out, --resume to go on with that run, or --overwrite to delete it";
  if (existing == RunDirectory::Existing::kRefuse)
    for (const char* file : {"quantize.json", "calibrated/config.json", "trained/config.json"})
      if (is_there(path / file)) fail(path.string(), " holds a run of quantize already (", file, "): ", advice);
  return RunDirectory::fresh(path, advice, existing);
}

RunDirectory resumed_quantization(const fs::path& path) {
  if (!is_there(require_name(path) / "quantize.json"))
    fail(path.string(), " holds no run of quantize: there is no ", (path / "quantize.json").string());
  RunDirectory run = RunDirectory::fresh(path, "", RunDirectory::Existing::kOverwrite);
  run.require_no_links();
  return run;
}

void write_plan(const QuantizationPlan& plan, const RunDirectory& run) {
  // A file that may be one of the run that goes.
  std::optional<std::string> class_weights;
  if (has_class_weights_file(plan.training) && is_there(plan.training.class_weights))
    class_weights = read_file(plan.training.class_weights);
  require_data_elsewhere(plan.training.dataset, run.path());
  run.clear();
  for (const fs::path& stage : {calibrated_in(run), trained_in(run)})
    if (is_there(stage / "config.json")) RunDirectory::fresh(stage, "", RunDirectory::Existing::kOverwrite).clear();
  if (!plan.training.rewrite.layer_bits.empty())
    write_json(run.bits(), quantize::layer_bits_to_json(plan.training.rewrite.layer_bits));
  if (class_weights) write_file_atomically(run.class_weights(), *class_weights);
  write_json(run.quantization(), plan_to_json(plan));
}

Json plan_to_json(const QuantizationPlan& plan) {
  Json json;
  if (plan.run.empty()) {
    json["model"] = plan.training.model;
    json["model_hash"] = plan.source_hash;
  } else {
    json["run"] = plan.run;
    json["run_hash"] = plan.source_hash;
  }
  json["calibration"] = settings_to_json(plan.calibrate);
  json["training"] = settings_to_json(plan.training);
  json["complete"] = false;
  return json;
}

QuantizationPlan read_plan(const RunDirectory& run) {
  const std::string source = run.quantization().string();
  const Json json = read_json(run.quantization());
  QuantizationPlan plan;
  const bool has_model = json.is_object() && json.contains("model_hash");
  const char* key = has_model ? "model_hash" : "run";
  if (!field_from_json(part_of(json, key, source), has_model ? plan.source_hash : plan.run))
    fail(source, ": \"", key, "\" is not a text");
  if (!has_model) plan.source_hash = text_at(json, "run_hash");
  settings_from_json(part_of(json, "calibration", source), plan.calibrate, source);
  plan.training = recorded_settings(part_of(json, "training", source), source);
  RewriteSettings& rewrite = plan.training.rewrite;
  if (!rewrite.bits_config.empty()) rewrite.bits_config = run.bits().string();
  load_layer_bits(rewrite);
  use_own_class_weights(plan.training, run);
  return plan;
}

bool is_quantized(const RunDirectory& run) { return read_json(run.quantization()).value("complete", false); }

}  // namespace miniqat::training
