#include "training/settings/train_settings.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/text/utf8.h"
#include "datasets/data_dir.h"
#include "datasets/known_datasets.h"
#include "quantize/quantizers.h"
#include "training/settings/usage_error.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size();
}

}  // namespace

SaveInterval::SaveInterval(const std::string& text) {
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
  constexpr double kMostSeconds = 1e9;
  double seconds = 0;
  // Stated by what is right: a NaN fails every comparison.
  if (parse(text, steps_) && steps_ >= 1 && steps_ <= kMostSteps) return;
  steps_ = 0;
  if (text.ends_with('s') && parse(std::string_view(text).substr(0, text.size() - 1), seconds) && seconds > 0 &&
      seconds <= kMostSeconds) {
    seconds_ = std::chrono::duration<double>(seconds);
    return;
  }
  throw UsageError(concat("--save-every must be a number of steps, as 500, or of seconds, as 60s; got ", quote(text)));
}

bool SaveInterval::is_due(std::int64_t step, std::int64_t saved_step, Clock::time_point saved) const {
  return steps_ > 0 ? step - saved_step >= steps_ : Clock::now() - saved >= seconds_;
}

const char* help_of_dataset() {
  static const std::string kHelp = concat(
      alternatives(datasets::dataset_names()),
      "; or your own: a folder of pictures or sounds for each class, IDX or .npy files, a .npz, .csv or .ts file");
  return kHelp.c_str();
}

const char* help_of_augment() {
  static const std::string kHelp = [] {
    std::vector<std::string> mirrored;
    for (const datasets::KnownDataset& dataset : datasets::known_datasets())
      if (dataset.mirrors) mirrored.push_back(dataset.name);
    return concat(
        "none; shift: training pictures shifted by up to 2 pixels, at random; crop-flip: shifted by up to 4 and half of them mirrored; auto: crop-flip for ",
        alternatives(mirrored));
  }();
  return kHelp.c_str();
}

void check_dataset(const std::string& name, const std::string& data_dir) {
  if (datasets::is_path(name)) {
    if (!data_dir.empty()) refuse_ignored("--data-dir", "a path as --dataset");
    return;
  }
  const bool has_files = as_usage([&] { return datasets::find_dataset(name).has_files; });
  if (!has_files && !data_dir.empty())
    refuse_ignored("--data-dir", concat("--dataset ", name, ", which needs no files"));
}

std::string resolved_dataset(const std::string& name) {
  if (!datasets::is_path(name)) return name;
  std::filesystem::path path = std::filesystem::absolute(name).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.string();
}

std::string resolved_data_dir(const std::string& dataset, const std::string& data_dir) {
  if (datasets::is_path(dataset) || !datasets::find_dataset(dataset).has_files) return data_dir;
  const std::filesystem::path given = datasets::given_data_dir(data_dir);
  return given.empty() ? "" : std::filesystem::absolute(given).lexically_normal().string();
}

std::string resolved_augment(const TrainSettings& settings) {
  if (settings.augment != "auto") return settings.augment;
  // What own pictures show, nobody knows.
  if (datasets::is_path(settings.dataset)) return "none";
  return datasets::find_dataset(settings.dataset).mirrors ? "crop-flip" : "none";
}

std::pair<std::int64_t, std::int64_t> image_size_from(const std::string& text) {
  constexpr std::int64_t kMost = 4096;
  const auto number = [&](std::string_view part) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    require(error == std::errc() && end == part.data() + part.size() && value >= 1 && value <= kMost,
            concat("--image-size must be HxW or one number, each in 1..", kMost, ", got ", quote(text)));
    return value;
  };
  const std::string_view all = text;
  const std::size_t cross = all.find('x');
  if (cross == std::string_view::npos) return {number(all), number(all)};
  return {number(all.substr(0, cross)), number(all.substr(cross + 1))};
}

namespace {

datasets::Colour colour_from(const std::string& name) {
  if (name == "auto") return datasets::Colour::kAuto;
  if (name == "grey") return datasets::Colour::kGrey;
  if (name == "rgb") return datasets::Colour::kRgb;
  throw UsageError(wrong_choice("--colour", name, {"auto", "grey", "rgb"}));
}

}  // namespace

datasets::PictureOptions picture_options(const TrainSettings& settings) {
  datasets::PictureOptions options;
  if (!settings.image_size.empty()) std::tie(options.height, options.width) = image_size_from(settings.image_size);
  options.colour = colour_from(settings.colour);
  require(settings.mean >= 0 && settings.mean <= 1, concat("--mean must be in [0, 1], got ", exact(settings.mean)));
  require(settings.deviation >= 1e-3 && settings.deviation <= 1e3,
          concat("--std must be in [0.001, 1000], got ", exact(settings.deviation)));
  options.mean = settings.mean;
  options.deviation = settings.deviation;
  return options;
}

namespace {

/// The words between commas; none in an empty text.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t first = 0; !text.empty() && first <= text.size();) {
    const std::size_t comma = std::min(text.find(',', first), text.size());
    words.push_back(text.substr(first, comma - first));
    first = comma + 1;
  }
  return words;
}

/// A run would keep another text: its config.json is UTF-8.
void require_utf8(const char* flag, const std::string& text, const char* other_way = "") {
  require(utf8::is_valid(text), concat(flag, " ", quote(text), " is not UTF-8, and so a run cannot keep it: save the ",
                                       "table as UTF-8", other_way));
}

/// A task that predicts numbers or labels asks for them where --answers leaves it open.
datasets::Answers asked_answers(const TrainSettings& settings) {
  using enum datasets::Answers;
  const bool predicts = settings.task == regression().name || settings.task == multilabel().name;
  const bool classifies = settings.task == classification().name;
  if ((predicts && settings.answers == kClasses) || (classifies && settings.answers == kTargets)) {
    // Tables of pictures took no notice of it once.
    if (settings.of_a_run) return kAuto;
    throw UsageError(concat("--answers ", names_of(settings.answers)[static_cast<std::size_t>(settings.answers)],
                            " does not go with --task ", settings.task, ": leave one of the two out"));
  }
  // A run that goes on by --task auto asks what the data mean by themselves.
  return predicts && !settings.task_is_guessed ? kTargets : settings.answers;
}

}  // namespace

datasets::NumberOptions number_options(const TrainSettings& settings) {
  if (settings.group_by.empty() && !settings.test_groups.empty())
    throw UsageError("--test-groups goes with --group-by, which says what a group is");
  constexpr const char* kByNumber = ", or give the number of a column, from 0";
  require_utf8("--target", settings.target, kByNumber);
  require_utf8("--group-by", settings.group_by, kByNumber);
  require_utf8("--test-groups", settings.test_groups);
  return {.inputs = settings.inputs,
          .target = words_of(settings.target),
          .answers = asked_answers(settings),
          .standardise = !settings.no_standardise,
          .pad_to = settings.pad_to,
          .group_by = settings.group_by,
          .test_groups = words_of(settings.test_groups)};
}

bool has_class_weights_file(const TrainSettings& settings) {
  return !settings.class_weights.empty() && settings.class_weights != "balanced";
}

std::span<const std::string_view> names_of(FactorType) {
  static constexpr std::array<std::string_view, 2> kNames = {"float32", "bfloat16"};
  return kNames;
}

std::span<const std::string_view> names_of(GradientType) {
  static constexpr std::array<std::string_view, 3> kNames = {"float32", "bfloat16", "int8"};
  return kNames;
}

TrainSettings recorded_settings(const Json& config, const std::string& source) {
  TrainSettings settings;
  settings.of_a_run = true;
  settings.reestimate = 0;
  settings_from_json(config, settings, source);
  if (settings.validation > 0 && !config.contains("validation_method"))
    settings.validation_method = datasets::HoldOut::kStride;
  if (!config.contains("arithmetic")) settings.arithmetic = Arithmetic::kSimulated;
  std::error_code failure;
  if (!settings.data_dir.empty() && !std::filesystem::is_directory(settings.data_dir, failure) &&
      !datasets::given_data_dir({}).empty())
    settings.data_dir.clear();
  return settings;
}

std::string TrainSettings::rounding_flag() const {
  if (compute != FactorType::kFloat32) return "--compute bfloat16";
  if (float_only || gradients == GradientType::kFloat32) return "";
  return concat("--gradients ", names_of(gradients)[static_cast<std::size_t>(gradients)]);
}

const Task* known_task(const TrainSettings& settings) {
  if (settings.task != kTaskOfData) return &as_usage([&]() -> auto& { return find_task(settings.task); });
  return datasets::is_path(settings.dataset) || draws_sounds(settings.dataset) ? nullptr : &classification();
}

datasets::AugmentOptions augmentation(const TrainSettings& settings) {
  const std::string name = resolved_augment(settings);
  if (name == "none") return {.vary_sounds = !settings.sounds.variation().none()};
  if (name == "crop-flip") return datasets::crop_and_flip();
  if (name == "shift") return datasets::shift();
  throw UsageError(wrong_choice("--augment", name, {"auto", "none", "shift", "crop-flip"}));
}

std::string quantization_label(const TrainSettings& settings) {
  if (settings.float_only) return quantize::Quantization{}.label();
  const RewriteSettings& rewrite = settings.rewrite;
  quantize::Quantization asked;
  asked.quantizers = 1;
  asked.weight_bits = {rewrite.weight_bits};
  asked.activation_bits = {rewrite.activation_bits};
  asked.mixed = !rewrite.bits_config.empty();
  asked.per_channel = rewrite.per_channel;
  asked.symmetric_weights = rewrite.symmetric || rewrite.has_symmetric_weights();
  asked.symmetric_activations = rewrite.symmetric;
  asked.full_range_weights = rewrite.full_range_weights;
  asked.single = rewrite.bn_fold == quantize::BnFold::kSingle;
  asked.late = rewrite.bn_fold == quantize::BnFold::kLate;
  return asked.label();
}

}  // namespace miniqat::training
