#include "training/settings/given_settings.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "core/engine/session.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "datasets/known_datasets.h"
#include "training/model_source.h"
#include "training/settings/optimizers.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/settings.h"
#include "training/settings/settings_of_data.h"
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

/// Under their own names these would be "every" and "factor".
void check_schedule(const TrainSettings& settings) {
  if (settings.schedule != "step" && settings.schedule != "exponential") return;
  require(settings.schedule_every >= 1,
          concat("--schedule-every must be at least 1 step, is ", settings.schedule_every));
  require(settings.schedule_factor > 0 && settings.schedule_factor <= 1,
          concat("--schedule-factor must be in (0, 1], is ", exact(settings.schedule_factor)));
}

/// What float32 makes 0 or infinite would not have the effect that was asked for. Runs of earlier versions may have it.
/// Rates: optim/option_checks.h.
void check_float32(const TrainSettings& settings) {
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  for (const auto& [name, value] : {std::pair("momentum", settings.momentum),
                                    {"label_smoothing", settings.label_smoothing},
                                    {"huber", settings.huber},
                                    {"dampening", settings.dampening}}) {
    if (settings.of_a_run && !settings.given.contains(name)) continue;
    require(!(value > 0 && value < kLeast),
            concat(flag_of(name), " is ", value, ", which is 0 in float32: give 0 or at least ", kLeast));
    require(!(value > kMost), concat(flag_of(name), " is ", value, ", which is infinite in float32"));
  }
}

/// Setting `gradients` means nothing to a float run.
void check_products(const TrainSettings& settings) {
  const bool quantizes = !settings.float_only, computes = settings.compute != FactorType::kFloat32;
  const GradientType gradients = quantizes ? settings.gradients : GradientType::kFloat32;
  if (!computes && gradients == GradientType::kFloat32) return;
  require(!computes || gradients != GradientType::kInt8,
          "--gradients int8 does not go with --compute bfloat16, which rounds gradients to bfloat16");
  const std::string flag = settings.rounding_flag();
  const char* instead = computes ? "" : "; elsewhere use --gradients float32, also with --resume";
  if (gradients == GradientType::kInt8)
    require(has_int8_products(),
            concat(flag, " needs a processor with AVX-512 VNNI or AMX, and MINIQAT_MAX_ISA must not leave them out",
                   instead));
  else
    require(has_bfloat16_products(),
            concat(flag, " needs a processor with AVX-512 BF16 or AMX, and MINIQAT_MAX_ISA must not leave them out",
                   instead));
  require(gradients == GradientType::kFloat32 || settings.arithmetic == Arithmetic::kInteger,
          concat("--gradients ", names_of(gradients)[static_cast<std::size_t>(gradients)],
                 " goes with --arithmetic integer: it is for layers that multiply integers"));
}

void check_shards(const TrainSettings& settings) {
  require(settings.shards >= 1 && std::has_single_bit(static_cast<std::uint64_t>(settings.shards)),
          concat("--shards must be a power of two, got ", settings.shards));
  require(settings.batch_size % settings.shards == 0,
          concat("--shards ", settings.shards, " must divide --batch-size ", settings.batch_size));
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

void check(const TrainSettings& settings) {
  require(settings.sounds.silence == 0 || settings.group_by.empty(),
          "--silence goes without --group-by: the pieces of noise are of no group");
  as_usage([&] { check_model_name(settings.model); });
  if (!settings.output.empty() && !is_graph_file(settings.model))
    refuse_ignored("--output", concat("--model ", settings.model, ", which has one output"));
  check_dataset(settings.dataset, "");
  if (!datasets::is_path(settings.dataset) && !settings.data)
    require_settings_of(datasets::find_dataset(settings.dataset).kind(), settings);
  known_task(settings);
  picture_options(settings);
  number_options(settings);
  settings.sounds.check(settings.dataset);
  augmentation(settings);
  require(
      settings.validation == 0 || settings.sounds.silence == 0,
      "--silence goes without --validation, which would part overlapping pieces of noise: name the validation part in validation_list.txt");
  check_limits(settings_of_data(), settings);
  check_limits(settings_of_numbers(), settings);
  check_limits(settings_of_steps(), settings);
  check_limits(settings_of_optimization(), settings);
  check_limits(settings_of_run(), settings);
  check_float32(settings);
  check_options<TrainSettings>([&] { settings.rewrite.check(); });
  require((settings.epochs >= 1 || settings.steps > 0) && settings.epochs <= 1'000'000,
          concat("--epochs must be in 1..1000000, got ", settings.epochs));
  check_shards(settings);
  check_products(settings);
  SaveInterval{settings.save_every};
  check_schedule(settings);
  check_scaled_rate(settings);
  check_options<TrainSettings>([&] { make_optimizer(settings, {.steps = warmup_steps(settings, 1) + 1, .epoch = 1}); });
  require(settings.range_learning_rate <= 1,
          concat("--range-learning-rate must be at most 1, got ", exact(settings.range_learning_rate),
                 ": it is the share of itself by which a learned range changes in a step (0.003 is 0.3%)"));
}

std::string settle_model(TrainSettings& settings, bool dataset_given, bool batch_given) {
  if (!is_onnx_file(settings.model))
    throw UsageError(concat("--model ", settings.model, " has no weights to quantize: give an ONNX model, or train it ",
                            "first (miniqat train --float) and give the run"));
  if (!dataset_given) throw UsageError("--model needs --dataset, the pictures that the network is for");
  settings.float_only = true;
  check_dataset(settings.dataset, settings.data_dir);
  check(settings);
  std::string note = batch_given ? "" : adopt_batch_size(settings);
  resolve(settings);
  return note;
}

void resolve(TrainSettings& settings) {
  settings.dataset = resolved_dataset(settings.dataset);
  settings.data_dir = resolved_data_dir(settings.dataset, settings.data_dir);
  if (has_class_weights_file(settings))
    settings.class_weights = std::filesystem::absolute(settings.class_weights).lexically_normal().string();
  if (settings.threads == 0) settings.threads = default_thread_count();
  settings.augment = resolved_augment(settings);
  settings.sounds.resolve(settings.dataset);
  // What files of one's own are for, is known once they are read (TrainingTask).
  if (!settings.learning_rate && known_task(settings) != nullptr)
    settings.learning_rate = default_learning_rate(settings);
}

std::string adopt_batch_size(TrainSettings& settings) {
  if (!is_graph_file(settings.model)) return "";
  const std::int64_t batch = fixed_batch(settings.model, settings.output);
  if (batch == 0) return "";
  // What exporters write when nobody asks: of no meaning for training.
  if (batch == 1 && is_onnx_file(settings.model))
    return concat("note: ", settings.model, " takes one picture at a time; it is trained with batches of ",
                  settings.batch_size, " (--batch-size)");
  settings.batch_size = batch * settings.shards;
  if (!is_onnx_file(settings.model)) return "";
  return concat("note: batches of ", settings.batch_size, ", as ", settings.model, " fixes: --batch-size changes it");
}

void require_ending(const std::string& flag, const std::filesystem::path& file,
                    const std::vector<std::string>& endings) {
  const std::string ending = file.extension().string();
  if (!ending.empty() && std::ranges::find(endings, ending) == endings.end())
    throw UsageError(concat(flag, " must end in ", alternatives(endings), ", not ", quote(file.string())));
}

}  // namespace miniqat::training
