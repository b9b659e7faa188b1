#include "cli/flags/setting_flags.h"

#include <algorithm>

#include "training/settings/given_settings.h"

namespace miniqat::cli {

using namespace training;

const std::vector<FlagGroup>& groups_of_training() {
  static const std::vector<FlagGroup> kGroups = {
      {.heading = "Data",
       .first = {"dataset", "data_dir", "task", "image_size", "features", "validation"},
       .more = {"target",     "inputs",       "answers",       "group_by", "test_groups", "no_standardise",
                "pad_to",     "frames",       "sample_rate",   "seconds",  "window_ms",   "stride_ms",
                "bands",      "coefficients", "low_hz",        "high_hz",  "mel_scale",   "silence",
                "snr_db",     "shift_ms",     "gain_db",       "noise",    "noise_db",    "validation_method",
                "augment",    "no_shuffle",   "class_weights", "colour",   "mean",        "std",
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

void check_calibration(const SettingFlags<CalibrateSettings>& flags, const CalibrateSettings& settings) {
  check(settings);
  if (flags.was_given("percentile") && settings.method != quantize::CalibrationMethod::kPercentile)
    throw UsageError("--percentile goes with --method percentile");
}

void apply_flags(const SettingFlags<TrainSettings>& flags, TrainSettings& settings) {
  flags.apply(settings);
  for (const std::string& name : flags.given()) settings.given.insert(name);
  settle_given(settings);
}

}  // namespace miniqat::cli
