#include "cli/flags/setting_flags.h"

namespace miniqat::cli {

const std::vector<FlagGroup>& groups_of_training() {
  static const std::vector<FlagGroup> kGroups = {
      {.heading = "Data",
       .first = {"dataset", "data_dir", "image_size", "validation"},
       .more = {"validation_method", "augment", "no_shuffle", "class_weights", "colour", "mean", "std", "skip_broken"}},
      {.heading = "Network", .first = {"model", "init_checkpoint"}, .more = {"width", "output"}},
      {.heading = "Bits and ranges",
       .first = {"float", "weight_bits", "activation_bits", "per_channel"},
       .more = {"logits_bits", "ends_bits", "sums_bits", "bits_config", "quant_delay", "ranges", "ema_decay",
                "symmetric", "symmetric_weights", "asymmetric_weights", "full_range_weights", "scales", "bn_fold",
                "freeze_bn_delay", "reestimate", "quantize_input", "float_pools", "scope", "strict"}},
      {.heading = "Schedule",
       .first = {"epochs", "steps", "batch_size", "optimizer", "learning_rate"},
       .more = {"schedule", "warmup_steps", "schedule_every", "schedule_factor", "scale_learning_rate",
                "range_learning_rate", "momentum", "nesterov", "weight_decay", "decay_all", "label_smoothing",
                "dampening"}},
      {.heading = kRunHeading,
       .first = {"threads", "seed"},
       .more = {"shards", "threads_per_shard", "log_every", "save_every"}}};
  return kGroups;
}

}  // namespace miniqat::cli
