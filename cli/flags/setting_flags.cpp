#include "cli/flags/setting_flags.h"

#include <algorithm>

#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/model_source.h"
#include "training/settings/optimizers.h"
#include "training/task/task.h"

namespace miniqat::cli {

using namespace training;

namespace {

/// Unless layers, or a graph file that was rewritten before, have ranges of their own.
void refuse_ignored_beside_ranges(const TrainSettings& settings, const auto& refuse) {
  const RewriteSettings& rewrite = settings.rewrite;
  if (!rewrite.bits_config.empty() || is_graph_file(settings.model)) return;
  const bool weights = traits_of(rewrite.weight_range()).learned;
  const quantize::RangeKindTraits& activations = traits_of(rewrite.activation_range());
  const std::string ranges = concat("--ranges ", names_of(rewrite.ranges)[static_cast<std::size_t>(rewrite.ranges)]);
  const bool by_bits = depends_on_bits(rewrite.ranges);
  refuse("range_learning_rate", !weights && !activations.learned,
         by_bits ? concat(ranges, " and more than 4 bits") : ranges);
  refuse("ema_decay", !activations.averages,
         rewrite.ranges == quantize::RangeChoice::kAuto ? concat(ranges, " --activation-bits ", rewrite.activation_bits)
                                                        : ranges);
}

}  // namespace

const std::vector<FlagGroup>& groups_of_training() {
  static const std::vector<FlagGroup> kGroups = {
      {.heading = "Data",
       .first = {"dataset", "data_dir", "task", "image_size", "features", "validation"},
       .more = {"target",        "inputs",
                "answers",       "group_by",
                "test_groups",   "no_standardise",
                "pad_to",        "frames",
                "sample_rate",   "seconds",
                "window_ms",     "stride_ms",
                "bands",         "coefficients",
                "low_hz",        "high_hz",
                "snr_db",        "shift_ms",
                "gain_db",       "noise",
                "noise_db",      "validation_method",
                "augment",       "no_shuffle",
                "class_weights", "colour",
                "mean",          "std",
                "skip_broken"}},
      {.heading = "Network", .first = {"model", "init_checkpoint"}, .more = {"width", "output"}},
      {.heading = "Bits and ranges",
       .first = {"float", "weight_bits", "activation_bits", "per_channel"},
       .more = {"logits_bits",
                "ends_bits",
                "sums_bits",
                "bits_config",
                "quant_delay",
                "ranges",
                "ema_decay",
                "symmetric",
                "symmetric_weights",
                "asymmetric_weights",
                "full_range_weights",
                "scales",
                "bn_fold",
                "freeze_bn_delay",
                "reestimate",
                "quantize_input",
                "input_bits",
                "float_pools",
                "scope",
                "strict"}},
      {.heading = "Schedule",
       .first = {"epochs", "steps", "batch_size", "optimizer", "learning_rate", "huber"},
       .more = {"schedule", "warmup_steps", "schedule_every", "schedule_factor", "scale_learning_rate",
                "range_learning_rate", "momentum", "nesterov", "weight_decay", "decay_all", "label_smoothing",
                "dampening"}},
      {.heading = kRunHeading,
       .first = {"threads", "seed"},
       .more = {"arithmetic", "gradients", "compute", "shards", "threads_per_shard", "log_every", "save_every"}}};
  return kGroups;
}

void require_ending(const std::string& flag, const std::filesystem::path& file,
                    const std::vector<std::string>& endings) {
  const std::string ending = file.extension().string();
  if (!ending.empty() && std::ranges::find(endings, ending) == endings.end())
    throw UsageError(concat(flag, " must end in ", alternatives(endings), ", not ", quote(file.string())));
}

void check_calibration(const SettingFlags<CalibrateSettings>& flags, const CalibrateSettings& settings) {
  check(settings);
  if (flags.was_given("percentile") && settings.method != quantize::CalibrationMethod::kPercentile)
    throw UsageError("--percentile goes with --method percentile");
}

void apply_flags(const SettingFlags<TrainSettings>& flags, TrainSettings& settings) {
  flags.apply(settings);
  for (const std::string& name : flags.given()) settings.given.insert(name);
  const auto refuse = [&](const char* setting, bool ignored, const std::string& beside) {
    if (ignored && flags.was_given(setting)) refuse_ignored(flag_of(setting), beside);
  };
  RewriteSettings::visit(
      [&](const char* setting, auto, const char*) { refuse(setting, settings.float_only, "--float"); });
  // Where the data decide the task, train() looks again.
  const Task* task = known_task(settings);
  TrainSettings known = settings;
  known.rewrite.ranges = ranges_for(settings.rewrite.ranges, task == nullptr ? classification() : *task);
  refuse_ignored_symmetry(flags, known.rewrite);
  for (const char* setting : {"range_learning_rate", "dampening", "arithmetic", "gradients"})
    refuse(setting, settings.float_only, "--float");
  refuse_ignored_beside_ranges(known, refuse);
  const KnownOptimizer& optimizer = as_usage([&]() -> auto& { return find_optimizer(settings.optimizer); });
  for (const char* setting : optimizer.ignores) refuse(setting, true, "--optimizer " + optimizer.name);
  const bool steady = settings.schedule == "constant" || settings.schedule == "cosine";
  refuse("schedule_every", steady, "--schedule " + settings.schedule);
  refuse("schedule_factor", steady, "--schedule " + settings.schedule);
  refuse("threads_per_shard", settings.shards == 1, "--shards 1");
  refuse("validation_method", settings.validation == 0 && settings.init_checkpoint.empty(), "--validation 0");
  refuse("decay_all", settings.weight_decay == 0, "--weight-decay 0");
  refuse("width", is_graph_file(settings.model), concat("--model ", settings.model, ", a graph that has its widths"));
  check_dataset(settings.dataset, flags.was_given("data_dir") ? settings.data_dir : "");
  refuse("epochs", flags.was_given("steps") && settings.steps > 0, concat("--steps ", settings.steps));
  if (flags.was_given("epochs")) settings.steps = 0;
}

}  // namespace miniqat::cli
