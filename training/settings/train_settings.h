#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "core/graph/op_queries.h"
#include "datasets/augment.h"
#include "datasets/dataset.h"
#include "datasets/hold_out.h"
#include "datasets/number_options.h"
#include "datasets/picture_options.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/settings.h"
#include "training/settings/sound_settings.h"

namespace miniqat::training {

/// What `--data-dir` is, wherever there is one.
inline constexpr const char* kDataDirHelp =
    "the folder of the data set's files, or the one around it, as in data/mnist (or MINIQAT_DATA_DIR)";

/// The help of every --threads.
inline constexpr const char* kThreadsHelp =
    "0: OMP_NUM_THREADS if it is set, else all cores, or what a cgroup quota allows; at most 1024";

/// The task that the data decide (task_for()).
inline constexpr const char* kTaskOfData = "auto";

/// The interval between checkpoints of a run, in steps ("500") or seconds ("60s").
class SaveInterval {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws UsageError for any other text.
  explicit SaveInterval(const std::string& text);

  /// Whether a checkpoint is due after `step`, when the last one was of `saved_step` and taken at `saved`.
  bool is_due(std::int64_t step, std::int64_t saved_step, Clock::time_point saved) const;

 private:
  /// One of them is 0.
  std::int64_t steps_ = 0;
  std::chrono::duration<double> seconds_{0};
};

/// What the factors of a product are rounded to.
enum class FactorType { kFloat32, kBfloat16 };
/// "float32" and "bfloat16".
std::span<const std::string_view> names_of(FactorType);
/// What the output's gradient of a layer that multiplies integers is rounded to.
enum class GradientType { kFloat32, kBfloat16, kInt8 };
/// "float32", "bfloat16" and "int8".
std::span<const std::string_view> names_of(GradientType);

/// The rewrite settings of `train` without flags: the rewrite's own, but ranges are those that suit the task.
inline RewriteSettings rewrite_of_trainings() {
  RewriteSettings settings;
  settings.ranges = quantize::RangeChoice::kByTask;
  return settings;
}

/// Everything that decides what a training run computes: the flags of `train` and a run's config.json.
struct TrainSettings {
  std::string model = "lenet";
  double width = 1.0;
  std::string output;
  std::string dataset = "synthetic";
  std::string task = kTaskOfData;
  std::string data_dir;
  std::string image_size;
  std::string colour = "auto";
  double mean = 0;
  double deviation = 1;
  bool skip_broken = false;
  datasets::Inputs inputs = datasets::Inputs::kAuto;
  std::string target;
  datasets::Answers answers = datasets::Answers::kAuto;
  bool no_standardise = false;
  std::int64_t pad_to = 0;
  std::string group_by;
  std::string test_groups;
  SoundSettings sounds;
  std::string augment = "auto";
  std::int64_t validation = 0;
  datasets::HoldOut validation_method = datasets::HoldOut::kByClass;

  bool float_only = false;
  RewriteSettings rewrite = rewrite_of_trainings();

  std::int64_t epochs = 10;
  std::int64_t steps = 0;
  std::int64_t batch_size = 128;
  std::int64_t shards = 1;
  std::int64_t threads_per_shard = 1;
  Arithmetic arithmetic = Arithmetic::kInteger;
  GradientType gradients = GradientType::kFloat32;
  FactorType compute = FactorType::kFloat32;
  bool no_shuffle = false;
  std::string optimizer = "sgd";
  /// None: the optimizer's default_learning_rate.
  std::optional<double> learning_rate;
  /// The batch size for which the learning rate was chosen; 0: the rate stays as it is (optimizers.h).
  std::int64_t scale_learning_rate = 0;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 5e-4;
  bool decay_all = false;
  double range_learning_rate = 0.003;
  double label_smoothing = 0;
  /// The delta of the Huber loss of numbers; 0: the squared error.
  double huber = 0;
  /// "balanced", a JSON file (class_weights_of()), or "" for none.
  std::string class_weights;
  double dampening = 0;
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 0;
  std::int64_t schedule_every = 1000;
  double schedule_factor = 0.1;
  /// Batches. None: TrainingTask decides.
  std::optional<std::int64_t> reestimate;
  std::string init_checkpoint;
  std::int64_t seed = 1;
  std::int64_t threads = 0;
  std::int64_t log_every = 50;
  std::string save_every = "60s";

  /// The copy of a model file's network that a run keeps; "" where the file itself is to be read. Not a setting:
  /// neither flags nor config.json have it.
  std::string model_graph = {};
  /// The data where somebody has read them already, without a validation part; null where `dataset` is to be read. Not
  /// a setting, either.
  std::shared_ptr<const datasets::Splits> data = {};
  /// The run on this data set whose means and deviations numbers and targets get; "" for those of the training part.
  /// Not a setting, either.
  std::string standards_of = {};

  /// The settings that somebody chose, by name, even where they are the usual ones (settings_of_data.h). Not a setting.
  std::set<std::string> given = {};
  /// The settings were read from the config.json of a run, which may be older than what checks them.
  bool of_a_run = false;
  /// The settings go on with a run by --task auto: the data must mean `task`.
  bool task_is_guessed = false;

  /// Pictures in a slice.
  std::int64_t slice_size() const { return batch_size / shards; }
  bool has_shards() const { return shards > 1; }
  /// "--compute bfloat16" or "--gradients int8", with their value; "" where no factor is rounded.
  std::string rounding_flag() const;
  /// Slices that are computed side by side: as many as there are threads for.
  std::int64_t slices_at_once() const { return std::clamp<std::int64_t>(threads / threads_per_shard, 1, shards); }
  template <class Visitor>
  static void visit(Visitor&& visitor);
};

/// Help that lists what the tables of data sets and optimizers have.
const char* help_of_dataset();
const char* help_of_augment();
const char* help_of_optimizer();
const char* help_of_learning_rate();

/// The largest number of steps, and the largest seed.
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

/// The tables of TrainSettings, in the order of config.json: network and data, numbers (and sounds
/// behind them), the rewrite's, then how it trains.
inline const auto& settings_of_data() {
  using S = TrainSettings;
  static const std::tuple kTable{
      Setting("model", &S::model, "a name from `miniqat models`, a graph JSON file, or an ONNX model with its weights"),
      Setting("width", &S::width, "multiplies the model's channels",
              // Less than min() is 0 in a program that flushes denormals.
              Limits{std::numeric_limits<double>::min(), 16, "must be in (0, 16]"}),
      Setting("output", &S::output,
              "of a model file with several outputs, the name of the one that has the logits; default: the first"),
      Setting("dataset", &S::dataset, help_of_dataset()),
      Setting(
          "task", &S::task,
          "classify, regress (numbers), reconstruct (the input; its error finds anomalies), multilabel (several labels); auto: what the data have"),
      Setting("data_dir", &S::data_dir, kDataDirHelp),
      Setting("image_size", &S::image_size,
              "own pictures: HxW, or one number for both; they are scaled to cover it, and cut to their middle"),
      Setting("colour", &S::colour, "own files: grey, rgb, or auto: grey if all pictures are"),
      Setting("mean", &S::mean, "own files: a pixel is (byte / 255 - mean) / std; rounded to a whole byte"),
      Setting("std", &S::deviation, "own files: see --mean"),
      Setting(
          "skip_broken", &S::skip_broken,
          "own files: leave out pictures that cannot be read, instead of ending with an error that names them; skipped_files.json in the run directory lists them"),
      Setting("augment", &S::augment, help_of_augment()),
      Setting("validation", &S::validation,
              "training pictures held out to measure each epoch on; 0: test pictures are for that", not_negative()),
      Setting(
          "validation_method", &S::validation_method,
          "which pictures --validation holds out: class: of each class its share, by a draw that depends on the pictures alone; stride: every so many, whatever their class, as runs of versions without this flag have it"),
      Setting("float", &S::float_only, "no quantization")};
  return kTable;
}

inline const auto& settings_of_numbers() {
  using S = TrainSettings;
  static const std::tuple kTable{
      Setting("inputs", &S::inputs,
              "own arrays and tables: pictures, numbers (of any shape, not rounded), or auto: pictures if they can be"),
      Setting(
          "target", &S::target,
          "own tables: the columns to predict, by names or by numbers from 0, with commas between them; default: label, class or target. Own sounds in one folder: a regular expression whose first capture in the path of a file is its class; ^(yes)_|$ tells yes from the class other"),
      Setting(
          "answers", &S::answers,
          "own tables, arrays and series: classes, targets (numbers to predict, or labels of 0 and 1), or auto: targets with --task regress and multilabel, else whole numbers and texts are classes"),
      Setting(
          "no_standardise", &S::no_standardise,
          "own numbers: leave them as they are, instead of (x - mean) / deviation of each channel of the training part"),
      Setting(
          "pad_to", &S::pad_to,
          "own series: fill shorter ones up to this number of steps with the means of their channels (zeros with --no-standardise); 0: all must have equally many",
          not_negative()),
      Setting(
          "group_by", &S::group_by,
          "own files and tables: keep the examples of a group in one part; a column, or a regular expression whose first capture in the path of a file is its group"),
      Setting(
          "test_groups", &S::test_groups,
          "with --group-by: the groups that are the test part, with commas between them; default: the last of every six")};
  return kTable;
}

inline const auto& settings_of_steps() {
  using S = TrainSettings;
  static const std::tuple kTable{
      Setting("epochs", &S::epochs, "passes over the training set"),
      Setting("steps", &S::steps, "steps instead of epochs; 0: epochs count", within(0, kMostSteps)),
      Setting("batch_size", &S::batch_size, "pictures a step", within(1, 65536)),
      Setting(
          "shards", &S::shards,
          "a power of two: compute each batch in so many equal slices, each by itself (its own batch statistics), as many at once as --threads allows; the numbers do not depend on --threads then"),
      Setting("threads_per_shard", &S::threads_per_shard,
              "with --shards: threads that compute a slice; another number may change the last bits", within(1, 1024)),
      Setting(
          "arithmetic", &S::arithmetic,
          "integer: layers between quantizers of few bits multiply their integers, whose sums are exact, where that is faster on this machine; simulated: float32 numbers on the same grids, as runs of versions without this flag have it"),
      Setting(
          "gradients", &S::gradients,
          "bfloat16: layers that multiply integers round their output's gradient to bfloat16 before it is multiplied by integers; faster, on processors with AVX-512 BF16 or AMX. int8: to bytes, by stochastic rounding, so that backward has exact sums of integers, too; on processors with AVX-512 VNNI or AMX. --resume may change them to float32"),
      Setting(
          "compute", &S::compute,
          "bfloat16: training steps round the factors of large products to bfloat16, of float networks, too; sums, weights, statistics and updates stay float32, and so does evaluation. On the same processors"),
      Setting("no_shuffle", &S::no_shuffle, "take the training set in its own order")};
  return kTable;
}

inline const auto& settings_of_optimization() {
  using S = TrainSettings;
  static const std::tuple kTable{
      Setting("optimizer", &S::optimizer, help_of_optimizer()),
      Setting("learning_rate", &S::learning_rate, help_of_learning_rate()),
      Setting(
          "scale_learning_rate", &S::scale_learning_rate,
          "the batch size for which --learning-rate was chosen: the rate is multiplied by --batch-size over this number, whatever --shards is. A greater rate is reached from the given one, in --warmup-steps or else 5 epochs (Goyal et al. 2017; for sgd). 0: nothing scales the rate",
          within(0, 65536)),
      Setting("momentum", &S::momentum, "of sgd, in [0, 1)"),
      Setting("nesterov", &S::nesterov, "Nesterov momentum"),
      Setting("weight_decay", &S::weight_decay, "L2 decay of weights, not of biases"),
      Setting("decay_all", &S::decay_all, "decay biases and batch-norm parameters, too"),
      Setting("range_learning_rate", &S::range_learning_rate,
              "the schedule's base rate for learned ranges: their relative change in a step, whatever the optimizer"),
      Setting("label_smoothing", &S::label_smoothing,
              "share of each label that is spread evenly over all classes, in [0, 1); affects the training loss only",
              Limits{0, std::nextafter(1.0, 0.0), "must be in [0, 1)"}),
      Setting(
          "huber", &S::huber,
          "regress, reconstruct: errors above this, in standard deviations, count in proportion, not squared; 0: all squared",
          at_least(0)),
      Setting(
          "class_weights", &S::class_weights,
          "balanced: the training loss of a picture is multiplied so that each class counts alike, however many pictures it has; or a JSON file, {\"class\": weight, ...}. Choices then follow the balanced accuracy"),
      Setting(
          "dampening", &S::dampening,
          "pulls quantized weights towards the integers that they are rounded to, against oscillation: the coefficient at the end of the run, to which it grows on a cosine; 0: off",
          at_least(0)),
      Setting("schedule", &S::schedule, "constant, step, exponential or cosine (to 0 at the end)"),
      Setting("warmup_steps", &S::warmup_steps, "steps in which the rate rises to its base", at_most(kMostSteps)),
      Setting("schedule_every", &S::schedule_every,
              "step, exponential: steps in which the rate changes by --schedule-factor"),
      Setting("schedule_factor", &S::schedule_factor, "step, exponential: the factor by which the rate changes"),
      Setting(
          "reestimate", &S::reestimate,
          "after the last step, estimate the batch norms' moving statistics again from this number of batches of training pictures; 0: keep the moving averages; default: 50 for weights of 4 bits and fewer with ranges per channel, else 0",
          not_negative())};
  return kTable;
}

inline const auto& settings_of_run() {
  using S = TrainSettings;
  static const std::tuple kTable{
      Setting("init_checkpoint", &S::init_checkpoint,
              "start from the variables of this .safetensors file or run directory, by name"),
      Setting("seed", &S::seed, "of weights, shuffling, augmentation and dropout", within(0, kMostSteps)),
      Setting("threads", &S::threads, kThreadsHelp, within(0, 1024)),
      Setting("log_every", &S::log_every, "steps between two lines of metrics.jsonl", at_least(1)),
      Setting(
          "save_every", &S::save_every,
          "steps (500) or seconds (60s) between two checkpoints; each epoch also ends with one. A killed run loses at most this much")};
  return kTable;
}

template <class Visitor>
void TrainSettings::visit(Visitor&& visitor) {
  visit_table(settings_of_data(), visitor);
  visit_table(settings_of_numbers(), visitor);
  SoundSettings::visit([&](const char* name, auto access, const char* help) {
    visitor(
        name, [access](auto& s) -> auto& { return access(s.sounds); }, help);
  });
  RewriteSettings::visit([&](const char* name, auto access, const char* help) {
    visitor(
        name, [access](auto& s) -> auto& { return access(s.rewrite); }, help);
  });
  visit_table(settings_of_steps(), visitor);
  visit_table(settings_of_optimization(), visitor);
  visit_table(settings_of_run(), visitor);
}

/// The settings in the config.json of a run. A setting that is younger than the run has the value that did the same
/// before, and a data_dir that is gone gives way to $MINIQAT_DATA_DIR. Throws what settings_from_json() throws.
TrainSettings recorded_settings(const nlohmann::ordered_json& config, const std::string& source);

/// Throws UsageError that lists the known data sets unless `name` is one or a path, and for a `data_dir` beside one
/// without files and beside a path.
void check_dataset(const std::string& name, const std::string& data_dir);

/// A path made absolute, so that it means the same from any folder; a name as it is.
std::string resolved_dataset(const std::string& name);

/// Whether TrainSettings::class_weights names a file.
bool has_class_weights_file(const TrainSettings& settings);

/// The folder that the files of a data set with a name are read from, as an absolute path: `data_dir` or, if that is
/// empty, $MINIQAT_DATA_DIR. "" where neither is given, and for data sets without files and a user's own.
std::string resolved_data_dir(const std::string& dataset, const std::string& data_dir);

/// "28x32", or "28" for both: {height, width}. Throws UsageError that names --image-size.
std::pair<std::int64_t, std::int64_t> image_size_from(const std::string& text);

/// `augment` with "auto" replaced by what suits the data set: mirrored digits are no digits.
std::string resolved_augment(const TrainSettings& settings);

/// How the numbers of a user's own files become examples: where `answers` is auto, `task` regress and multilabel have
/// targets. Throws UsageError for --test-groups without --group-by, and for `answers` that the task cannot have.
datasets::NumberOptions number_options(const TrainSettings& settings);

/// How the pictures of a user's own files become examples. Throws UsageError for a value out of range.
datasets::PictureOptions picture_options(const TrainSettings& settings);

/// What the network is for, by its name or since the data are pictures of a name; null where files of one's own, which
/// are not read yet, decide it. Throws UsageError for another name.
const Task* known_task(const TrainSettings& settings);

/// The options of the loader of training batches. Throws UsageError for an unknown `augment`.
datasets::AugmentOptions augmentation(const TrainSettings& settings);

/// quantize::Quantization::label() of the settings, "mixed" when layers have bits of their own. Run directories are
/// named after it, so it leaves out learned ranges and power-of-two scales, which older names do not mention.
std::string quantization_label(const TrainSettings& settings);

}  // namespace miniqat::training
