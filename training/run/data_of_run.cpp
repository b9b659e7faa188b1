#include "training/run/data_of_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/class_counts.h"
#include "datasets/known_datasets.h"
#include "training/run/own_copies.h"
#include "training/settings/settings.h"
#include "training/settings/settings_of_data.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

/// The grid that pictures of the run have, as mean and deviation.
datasets::PictureOptions picture_grid(const TrainSettings& settings) {
  if (datasets::is_path(settings.dataset)) return picture_options(settings);
  const datasets::KnownDataset& known = datasets::find_dataset(settings.dataset);
  datasets::PictureOptions options;
  datasets::set_grid(options, known.scale, known.zero_point);
  return options;
}

using Json = nlohmann::ordered_json;

std::vector<double> balanced_weights(const datasets::Dataset& train) {
  const std::vector<std::int64_t> counts = datasets::class_counts(train);
  const auto classes = static_cast<double>(counts.size() - std::ranges::count(counts, 0));
  std::vector<double> weights;
  for (const std::int64_t count : counts)
    weights.push_back(count == 0 ? 0 : static_cast<double>(train.size()) / (classes * static_cast<double>(count)));
  return weights;
}

double weight_from(const Json& json, const std::string& name, const std::string& file) {
  if (!json.is_number() || !(json.get<double>() >= 0) || !std::isfinite(json.get<float>()))
    throw UsageError(concat("--class-weights ", file, ": the weight of ", name,
                            " must be a finite number from 0 on, is ", shown(json)));
  return json.get<double>();
}

std::vector<double> weights_in_file(const std::string& file, const datasets::Dataset& train) {
  if (!is_there(file)) throw UsageError(concat("--class-weights is balanced or a JSON file, and there is no ", file));
  const Json json = as_usage([&] { return read_json(file); });
  std::vector<std::string> names;
  for (int label = 0; label < train.classes; ++label) names.push_back(train.class_name(label));
  std::vector<double> weights;
  if (json.is_array()) {
    if (json.size() != names.size())
      throw UsageError(concat("--class-weights ", file, " has ", counted(json.size(), "number"), " for ",
                              counted(names.size(), "class")));
    for (std::size_t label = 0; label < names.size(); ++label)
      weights.push_back(weight_from(json[label], names[label], file));
  } else if (json.is_object()) {
    for (const auto& item : json.items())
      if (std::ranges::find(names, item.key()) == names.end())
        throw UsageError(concat("--class-weights ", file, ": no class is called ", quote(item.key()),
                                did_you_mean(item.key(), names)));
    for (const std::string& name : names) {
      const auto found = json.find(name);
      if (found == json.end())
        throw UsageError(concat("--class-weights ", file, " has no weight for the class ", printable(name)));
      weights.push_back(weight_from(*found, name, file));
    }
  } else {
    throw UsageError(concat("--class-weights ", file, R"( must be {"class": weight, ...} or an array of weights)"));
  }
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    throw UsageError(concat("--class-weights ", file, ": all weights are 0"));
  return weights;
}

}  // namespace

datasets::LoadOptions load_options(const TrainedOn& network, const std::string& dataset) {
  datasets::LoadOptions options{.least_classes = network.classes, .class_names = network.class_names};
  const bool is_own = dataset == network.settings.dataset;
  const datasets::PictureOptions grid = picture_grid(network.settings);
  if (!datasets::is_path(dataset) && !draws_sounds(dataset)) {
    if (!is_own) options.grid = CodeGrid{datasets::scale_of(grid), static_cast<float>(datasets::zero_point_of(grid))};
    return options;
  }
  options.numbers = number_options(network.settings);
  options.sounds = network.settings.sounds.options(dataset);
  options.numbers.standard = network.standard;
  options.numbers.target_standard = network.target_standard;
  options.numbers.features = network.input_names;
  options.numbers.channels = network.images.channels();
  options.numbers.trained_on = network.inputs;
  options.snr_db = network.settings.sounds.snr_db;
  if (!datasets::is_path(dataset)) return options;
  options.pictures = grid;
  options.skip_broken = network.settings.skip_broken;
  if (!is_own && network.images.rank() == 4)
    datasets::set_shape(options.pictures, {network.images[1], network.images[2], network.images[3]});
  return options;
}

void describe_outputs(const TrainedOn& network, datasets::Dataset& examples) {
  if (examples.has_classes() || examples.targets.defined()) return;
  examples.classes = network.classes;
  examples.class_names = network.class_names;
  examples.target_standard = network.target_standard;
}

void require_kind_fits(datasets::DataKind kind, const Shape& example, const std::string& dataset,
                       const std::string& source) {
  if (kind == datasets::DataKind::kPictureFolders && example.rank() != 3)
    fail(source, ": the input is ", example, ", and ", dataset, " has ", datasets::words_of(kind));
}

TrainSettings moved_to(const TrainedOn& network, const std::string& dataset) {
  TrainSettings settings = network.settings;
  if (dataset == settings.dataset) return settings;
  const datasets::PictureOptions pictures = load_options(network, dataset).pictures;
  const TrainSettings untouched;
  settings.dataset = dataset;
  settings.sounds.snr_db.reset();
  settings.image_size = pictures.has_size() ? concat(pictures.height, "x", pictures.width) : untouched.image_size;
  settings.colour = pictures.colour == datasets::Colour::kAuto  ? "auto"
                    : pictures.colour == datasets::Colour::kRgb ? "rgb"
                                                                : "grey";
  settings.mean = pictures.mean;
  settings.deviation = pictures.deviation;
  return settings;
}

Json data_to_json(const datasets::Splits& data, const std::string& dataset) {
  Json json;
  if (data.train.has_pictures())
    json = {{"input_scale", data.train.scale}, {"input_zero_point", data.train.zero_point}};
  else
    json["inputs"] = "numbers";
  if (!data.train.has_pictures() && (datasets::is_of_sounds(dataset) || draws_sounds(dataset))) json["sounds"] = true;
  const auto put = [&](const std::string& what, const std::shared_ptr<const datasets::Standard>& standard) {
    if (!standard) return;
    json[what + "_mean"] = standard->mean;
    json[what + "_std"] = standard->deviation;
  };
  put("input", data.train.standard);
  put("target", data.train.target_standard);
  if (!data.train.target_names.empty()) json["target_names"] = data.train.target_names;
  if (!data.train.input_names.empty()) json["input_names"] = data.train.input_names;
  if (datasets::is_path(dataset)) json["pictures"] = picture_counts(data);
  if (const std::size_t skipped = data.remarks().skipped.size(); skipped > 0) json["skipped_files"] = skipped;
  if (!data.train.class_names.empty()) json["class_names"] = data.train.class_names;
  return json;
}

Json recorded_of_data(const RunDirectory& run, const char* key) {
  for (const std::filesystem::path& file : {run.summary(), run.dataset()}) {
    const Json json = json_if_there(file);
    if (const auto found = json.find(key); found != json.end()) return *found;
  }
  return nullptr;
}

std::shared_ptr<const datasets::Standard> recorded_standard(const RunDirectory& run, bool of_targets) {
  const std::string what = of_targets ? "target" : "input";
  const Json mean = recorded_of_data(run, (what + "_mean").c_str());
  const Json deviation = recorded_of_data(run, (what + "_std").c_str());
  if (!mean.is_array() || !deviation.is_array() || mean.size() != deviation.size() || mean.empty()) return {};
  const auto are_numbers = [](const Json& list) {
    return std::ranges::all_of(list, [](const Json& one) { return one.is_number(); });
  };
  if (!are_numbers(mean) || !are_numbers(deviation)) return {};
  return std::make_shared<const datasets::Standard>(
      datasets::Standard{mean.get<std::vector<float>>(), deviation.get<std::vector<float>>()});
}

const char* noun_of(const RunDirectory& run) {
  return recorded_of_data(run, "inputs") == "numbers" ? "example" : "picture";
}

std::vector<std::string> recorded_names(const RunDirectory& run, const char* key) {
  const Json recorded = recorded_of_data(run, key);
  std::vector<std::string> names;
  if (!recorded.is_array()) return names;
  for (const Json& name : recorded)
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names.size() == recorded.size() ? names : std::vector<std::string>();
}

bool is_gone(const std::string& dataset) { return datasets::is_path(dataset) && !is_there(dataset); }

void require_still_there(const std::string& run, const std::string& dataset, bool has_dataset) {
  if (!is_gone(dataset)) return;
  constexpr const char* kTakers = "eval, verify, predict, run, calibrate, export, sensitivity";
  fail("the run in ", run, " was trained on ", dataset, ", which is not there; if it was moved, ",
       has_dataset ? concat("give its place with --dataset (", kTakers, ") or put a link where it was")
                   : "put a link where it was (ln -s)");
}

Json picture_counts(const datasets::Splits& data) {
  return {{"training", data.train.size()},
          {"validation", data.validation ? data.validation->size() : 0},
          {"test", data.test.size()}};
}

void require_answers(const datasets::Splits& data, const Task& task) {
  const auto require = [&](const datasets::Dataset& part, const char* title) {
    try {
      task.outputs_for(part);
    } catch (const Error& error) {
      fail("the ", title, " part has nothing to measure by: ", error.what());
    }
  };
  require(data.test, "test");
  if (data.validation) require(*data.validation, "validation");
}

std::optional<datasets::Splits> moved_data(const RunDirectory& run, const TrainSettings& settings,
                                           const datasets::Splits& data) {
  const Json recorded = recorded_of_data(run, "pictures");
  if (!is_gone(settings.dataset) || recorded.is_null()) return {};
  datasets::Splits parts = data;
  if (!data.train.images.defined()) {
    std::int64_t all = 0;
    for (const char* part : {"training", "validation", "test"})
      if (std::int64_t count = 0; integer_from_json(recorded.value(part, Json(nullptr)), count)) all += count;
    if (data.validation || data.test.size() != all) return {};
    parts = datasets::split_off_test(data.test, number_options(settings).test_groups);
  }
  const bool has_both = settings.validation > 0 && parts.validation;
  if (has_both || settings.validation + settings.batch_size > parts.train.size()) return {};
  parts = with_validation_part(parts, settings);
  if (picture_counts(parts) != recorded) return {};
  return parts;
}

const Task& task_of(const TrainSettings& settings) {
  return settings.task == kTaskOfData ? classification() : find_task(settings.task);
}

ClassifierOptions classifier_options(const TrainSettings& settings) {
  return {.model = settings.model,
          .model_graph = settings.model_graph,
          .width = settings.width,
          .batch_size = settings.slice_size(),
          .output = settings.output,
          .shards = settings.shards,
          .task = settings.task == kTaskOfData ? nullptr : &find_task(settings.task)};
}

datasets::Splits load_wanted_data(const TrainSettings& settings) {
  datasets::LoadOptions options{.snr_db = settings.sounds.snr_db,
                                .pictures = picture_options(settings),
                                .numbers = number_options(settings),
                                .sounds = settings.sounds.options(settings.dataset),
                                .variation = settings.sounds.variation(),
                                // Versions that did not refuse them have made runs.
                                .unlearnt_classes = settings.of_a_run,
                                .skip_broken = settings.skip_broken};
  if (!settings.standards_of.empty()) {
    const RunDirectory run = RunDirectory::open(settings.standards_of);
    options.numbers.standard = recorded_standard(run, false);
    options.numbers.target_standard = recorded_standard(run, true);
  }
  options.accept_kind = [&](datasets::DataKind kind) { require_settings_of(kind, settings); };
  // The models that have a name are made to the pictures' measure.
  if (is_graph_file(settings.model))
    options.accept = [&](const Shape& example) {
      require_pictures_fit(classifier_options(settings), example, settings.dataset);
    };
  if (settings.data) {
    using enum datasets::DataKind;
    options.accept_kind(settings.data->train.has_pictures() ? kPictureArrays : kArrays);
    if (options.accept) options.accept(settings.data->train.example_shape());
  }
  const datasets::Splits data =
      settings.data ? *settings.data : datasets::load(settings.dataset, settings.data_dir, options);
  return as_usage([&] { return with_validation_part(data, settings); });
}

datasets::Splits with_validation_part(const datasets::Splits& data, const TrainSettings& settings) {
  const std::int64_t wanted = settings.validation, size = data.train.size();
  if (wanted > 0 && data.validation)
    fail("--validation ", wanted, ": ", data.train.name, " has a validation part of its own; leave it out");
  if (wanted > 0 && size - wanted < settings.batch_size)
    fail("--validation ", wanted, " leaves ",
         counted(std::max<std::int64_t>(size - wanted, 0), concat("training ", data.train.noun())), " of ", size,
         ", fewer than one batch of ", settings.batch_size);
  return datasets::hold_out(data, wanted, settings.validation_method);
}

ValidationPart validation_part_of(const TrainSettings& settings) {
  return {.size = settings.validation, .method = settings.validation_method};
}

void set_validation_part(TrainSettings& settings, const ValidationPart& part) {
  settings.validation = part.size;
  settings.validation_method = part.method;
}

std::string inherit_validation_part(TrainSettings& settings, const AskedValidation& asked) {
  const std::optional<RunDirectory> run = run_of_variables(settings.init_checkpoint);
  if (!run) return "";
  const TrainSettings former = settings_of(*run);
  if (former.dataset != settings.dataset) return "";
  const std::string name = settings.init_checkpoint, noun = noun_of(*run);
  if (former.validation == 0)
    return settings.validation == 0 ? ""
                                    : concat("note: the run in ", name, " was trained with the validation ", noun, "s");
  if (asked.size && settings.validation == 0) return "";
  const bool other_size = asked.size && settings.validation != former.validation;
  const bool other_method = asked.method && settings.validation_method != former.validation_method;
  if (other_size || other_method)
    throw UsageError(
        concat("--validation ", asked.size ? settings.validation : former.validation, ": the run in ", name,
               " has a validation part of ", counted(former.validation, noun), " (--validation-method ",
               names_of(former.validation_method)[static_cast<std::size_t>(former.validation_method)],
               "), and has trained with the others; leave it out, or give 0 to train with all ", noun, "s"));
  set_validation_part(settings, validation_part_of(former));
  return asked.size ? ""
                    : concat("note: the validation part is that of the run in ", name, ", ",
                             counted(former.validation, concat("training ", noun)));
}

std::string validation_counts(const datasets::Splits& data) {
  const datasets::Dataset& part = *data.validation;
  const std::string count = counted(part.size(), concat("validation ", part.noun()));
  return part.has_classes() ? concat(count, ", ", datasets::class_counts_text(part)) : count;
}

std::string note_on_small_classes(const datasets::Splits& data) {
  if (!data.validation || !data.train.has_classes()) return "";
  const std::string missing = datasets::classes_too_small(*data.validation, data.train);
  return missing.empty() ? "" : concat("note: too small for the validation part, which has none of them: ", missing);
}

std::string note_on_anomalies(const datasets::Splits& data, const Task& task) {
  if (&task != &reconstruction() || !data.train.has_classes()) return "";
  const std::vector<std::int64_t> counts = datasets::class_counts(data.train);
  const std::int64_t anomalies = data.train.size() - counts.front();
  if (anomalies == 0) return "";
  return concat("note: ", anomalies, " of ", counted(data.train.size(), concat("training ", data.train.noun())),
                " are anomalies, of other classes than ", printable(data.train.class_name(0)),
                "; a network that learns them does not find them by their error");
}

JudgingPart judging_part(const datasets::Splits& data) {
  if (data.validation) return {.pictures = *data.validation, .name = "validation"};
  return {.pictures = data.test, .name = "test"};
}

std::vector<double> class_weights_of(const TrainSettings& settings, const datasets::Dataset& train) {
  if (settings.class_weights.empty()) return {};
  if (!train.has_classes()) throw UsageError("--class-weights is for classes, which the data do not have");
  return has_class_weights_file(settings) ? weights_in_file(settings.class_weights, train) : balanced_weights(train);
}

void write_class_weights(const std::vector<double>& weights, const datasets::Dataset& train, const RunDirectory& run) {
  if (weights.empty()) return;
  Json json = Json::object();
  for (std::size_t label = 0; label < weights.size(); ++label)
    json[train.class_name(static_cast<std::int64_t>(label))] = weights[label];
  write_json(run.class_weights(), json);
}

void warn_of_files(const datasets::Splits& data, RunObserver& observer) {
  for (const std::string& note : data.remarks().notes) observer.warn(note);
}

void write_skipped_files(const datasets::Splits& data, const RunDirectory& run) {
  const datasets::FileRemarks remarks = data.remarks();
  if (remarks.skipped.empty()) return;
  auto list = nlohmann::ordered_json::array();
  for (const datasets::SkippedFile& file : remarks.skipped) list.push_back({{"file", file.file}, {"why", file.why}});
  write_json(run.skipped_files(), list);
}

}  // namespace miniqat::training
