#include "training/settings/given_settings.h"

#include <set>

#include "training/model_source.h"
#include "training/settings/optimizers.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/settings.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

/// Settings by name, as a command line has flags.
struct GivenNames {
  const std::set<std::string>& names;
  bool was_given(const std::string& name) const { return names.contains(name); }
};

/// What else a network leaves without effect is known once it is rewritten (note_on_rounding()).
void refuse_ignored_rounding(const TrainSettings& settings, const auto& refuse) {
  if (settings.float_only || settings.compute == FactorType::kFloat32) return;
  refuse("gradients", settings.gradients == GradientType::kFloat32,
         "--compute bfloat16, which rounds gradients to bfloat16");
}

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

void settle_given(TrainSettings& settings) {
  const GivenNames flags{settings.given};
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
  refuse_ignored_rounding(settings, refuse);
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

}  // namespace miniqat::training
