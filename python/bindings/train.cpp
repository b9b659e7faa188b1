// The command train, also on arrays.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <set>

#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/arrays/array_numbers.h"
#include "datasets/hold_out.h"
#include "datasets/standardise.h"
#include "python/bindings/observer.h"
#include "python/bindings/values.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/data_of_run.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"
#include "training/train/run_settings.h"
#include "training/train/trainer.h"

namespace miniqat::python {
namespace {

using datasets::Dataset;
using training::TrainSettings;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// A Dataset as the argument `dataset`, or two.
struct GivenData {
  Dataset train;
  std::optional<Dataset> test = {};

  /// As a reader of their files would give them.
  datasets::Splits splits(const TrainSettings& settings) const {
    datasets::Splits parts = test ? datasets::Splits{.train = train, .test = *test} : datasets::split_off_test(train);
    datasets::standardise(parts, {.standardise = !settings.no_standardise});
    return parts;
  }
};

void require_same_build(const Dataset& train, const Dataset& test) {
  const auto differ = [&](const char* what) {
    throw py::value_error(concat("dataset: the training and the test ", train.noun(), "s have different ", what));
  };
  if (train.has_pictures() != test.has_pictures() || train.example_shape() != test.example_shape()) differ("shapes");
  const auto columns = [](const Tensor& targets) { return targets.defined() ? targets.shape()[1] : 0; };
  if (columns(train.targets) != columns(test.targets)) differ("targets");
  if (train.scale != test.scale || train.zero_point != test.zero_point) differ("scales or zero points");
  if (train.class_names != test.class_names) differ("class_names");
}

/// Targets of pictures that load() has standardised, in the units of the data: train standardises them itself.
void restore_targets(Dataset& part) {
  if (!part.target_standard) return;
  part.targets = part.targets.clone();
  const std::span<float> values = part.targets.values<float>();
  const std::size_t columns = part.target_standard->mean.size();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(part.target_standard->restored(i % columns, values[i]));
  part.target_standard = nullptr;
}

/// Whole numbers are what a task predicts that predicts something.
void take_labels_as_targets(const py::kwargs& settings, Dataset& part) {
  const std::string task = settings.contains("task") ? std::string(py::str(py::object(settings["task"]))) : "";
  if (task != training::regression().name && task != training::multilabel().name) return;
  if (!part.has_classes() || !part.class_names.empty()) return;
  part.targets = datasets::targets_of(std::exchange(part.labels, Tensor()));
  part.classes = 0;
}

/// A file of labels tells of classes without pictures by names alone: of those without a name their numbers.
void name_classes(GivenData& data) {
  int most = -1;
  for (const Dataset* part : {&data.train, data.test ? &*data.test : &data.train})
    if (part->has_classes()) most = std::max<int>(most, *std::ranges::max_element(part->labels.values<std::int32_t>()));
  if (!data.train.class_names.empty() || most + 1 >= data.train.classes) return;
  for (int number = 0; number < data.train.classes; ++number) data.train.class_names.push_back(std::to_string(number));
  if (data.test) data.test->class_names = data.train.class_names;
}

/// Whether several examples are windows of one recording.
bool has_windows(const Dataset& part) {
  if (!part.recordings.defined()) return false;
  const auto recordings = part.recordings.values<std::int32_t>();
  std::set<std::int32_t> numbers;
  for (std::size_t i = 0; i < recordings.size(); i += 2) numbers.insert(recordings[i]);
  return std::ssize(numbers) < part.size();
}

/// The run reads its data from arrays again, which hold neither groups nor recordings: groups part the data now, and
/// what they could not do later is refused.
void leave_to_arrays(const py::kwargs& settings, GivenData& data) {
  if (data.train.sounds || (data.test && data.test->sounds))
    throw py::value_error("dataset: a run cannot keep sounds that are varied: give train their name or path");
  if (has_windows(data.train) || (data.test && has_windows(*data.test)))
    throw py::value_error("dataset: a run cannot keep windows of recordings: give train their name or path");
  if (data.train.groups.defined()) {
    const py::object validation = settings.contains("validation") ? py::object(settings["validation"]) : py::int_(0);
    if (!validation.equal(py::int_(0)))
      throw py::value_error(
          "dataset: a run cannot keep the groups that validation would take: give train their name or path");
    if (!data.test) {
      const datasets::Splits parts = datasets::split_off_test(data.train);
      data = {parts.train, parts.test};
    }
  }
  for (Dataset* part : {&data.train, data.test ? &*data.test : &data.train}) {
    part->groups = part->recordings = Tensor();
    part->group_names.clear();
  }
}

/// Takes it out of the settings; none where `dataset` is a name or a path.
std::optional<GivenData> take_data(const py::kwargs& settings) {
  if (!settings.contains("dataset")) return {};
  const py::object given = settings["dataset"];
  std::optional<GivenData> data;
  if (py::isinstance<Dataset>(given)) {
    data = GivenData{given.cast<const Dataset&>()};
    take_labels_as_targets(settings, data->train);
  } else if (py::isinstance<py::tuple>(given)) {
    const auto pair = py::reinterpret_borrow<py::tuple>(given);
    if (pair.size() != 2 || !py::isinstance<Dataset>(pair[0]) || !py::isinstance<Dataset>(pair[1]))
      throw py::type_error("dataset must be a name, a path, a Dataset, or a tuple of two: training and test");
    const py::object train = pair[0], test = pair[1];
    data = GivenData{train.cast<const Dataset&>(), test.cast<const Dataset&>()};
    for (Dataset* part : {&data->train, &*data->test}) take_labels_as_targets(settings, *part);
    require_same_build(data->train, *data->test);
    data->train.classes = data->test->classes = std::max(data->train.classes, data->test->classes);
  }
  if (!data) return {};
  if (const std::int64_t channels = data->train.images.shape()[-1];
      data->train.has_pictures() && channels != 1 && channels != 3)
    throw py::value_error(concat("dataset: train takes pictures of 1 or 3 channels, not ", channels));
  if (data->train.standard || (data->test && data->test->standard))
    throw py::value_error("dataset: the numbers are standardised; train does that itself: give them as they were");
  restore_targets(data->train);
  if (data->test) restore_targets(*data->test);
  leave_to_arrays(settings, *data);
  for (const char* name : {"data_dir", "image_size", "colour", "mean", "std", "skip_broken", "inputs", "answers"})
    if (settings.contains(name))
      throw py::value_error(
          concat(name, " is for files; a Dataset has its ", data->train.noun(), "s and their answers as they are"));
  name_classes(*data);
  settings.attr("pop")("dataset");
  return data;
}

/// The settings that read the arrays of the run in `out` as they were given.
void put_data(const GivenData& data, const fs::path& out, Json& json) {
  json["dataset"] = fs::absolute(out / training::RunDirectory::kGivenArrays).lexically_normal().string();
  if (!data.train.has_pictures()) {
    json["inputs"] = "numbers";
    return;
  }
  datasets::PictureOptions options;
  datasets::set_grid(options, data.train.scale, data.train.zero_point);
  if (datasets::scale_of(options) != data.train.scale || datasets::zero_point_of(options) != data.train.zero_point)
    throw py::value_error(concat("dataset: train cannot keep the scale ", data.train.scale));
  json["mean"] = options.mean;
  json["std"] = options.deviation;
}

/// As datasets/user_files.h reads it.
void write_arrays(const GivenData& data, const fs::path& path) {
  const py::module_ numpy = py::module_::import("numpy");
  py::dict arrays;
  const auto put = [&](const Dataset& part, const std::string& name) {
    arrays[py::str("x_" + name)] = to_array(part.images);
    for (const Tensor& answers : {part.labels, part.targets})
      if (answers.defined()) arrays[py::str("y_" + name)] = to_array(answers);
  };
  put(data.train, "train");
  if (data.test) put(*data.test, "test");
  if (!data.train.class_names.empty()) {
    py::list names;
    for (const std::string& name : data.train.class_names) names.append(name);
    arrays["class_names"] = numpy.attr("array")(names);
  }
  const fs::path unfinished = path.parent_path() / concat(".", path.filename().string(), ".tmp.npz");
  call_python(numpy.attr("savez"), py::make_tuple(unfinished), arrays);
  fs::rename(unfinished, path);
}

TrainSettings settings_from(const Json& json, TrainSettings settings) {
  const std::string former = settings.optimizer;
  training::settings_from_json(json, settings, "settings");
  for (const auto& item : json.items()) settings.given.insert(item.key());
  training::settle_given(settings);
  training::require_rate_for(former, settings, json.contains("learning_rate"));
  training::load_layer_bits(settings.rewrite);
  return settings;
}

std::string way_on_in_python(const fs::path& out) {
  return concat("miniqat.train(", quote(out.string()), ", resume=True)");
}

void train_new(const fs::path& out, bool overwrite, const Json& json, const std::optional<GivenData>& data,
               Observer& observer) {
  TrainSettings settings = settings_from(json, {});
  if (data) settings.data = std::make_shared<const datasets::Splits>(data->splits(settings));
  training::check(settings);
  training::TrainExtras extras{.way_on = way_on_in_python(out)};
  if (data)
    extras.first_files = [&](const training::RunDirectory& run) {
      const Locked locked;
      write_arrays(*data, run.given_arrays());
    };
  if (!json.contains("batch_size")) extras.notes.push_back(training::adopt_batch_size(settings));
  for (const auto& item : json.items()) extras.given.push_back(item.key());
  training::resolve(settings);
  extras.notes.push_back(training::inherit_validation_part(
      settings, {.size = json.contains("validation"), .method = json.contains("validation_method")}));
  set_thread_count(static_cast<int>(settings.threads));
  if (overwrite) training::require_inputs_elsewhere(settings, out);
  const auto run = training::RunDirectory::fresh(
      out, "give another folder, resume=True to go on with that run, or overwrite=True to delete it",
      overwrite ? training::RunDirectory::Existing::kOverwrite : training::RunDirectory::Existing::kRefuse);
  training::train(settings, run, extras, observer);
}

void train_on(const fs::path& out, const Json& json, Observer& observer) {
  const auto run = training::resumed_training(out);
  training::TrainExtras extras{.resume = true, .begun = training::begun_settings(run), .way_on = way_on_in_python(out)};
  TrainSettings wanted = settings_from(json, extras.begun);
  wanted.dataset = training::resolved_dataset(wanted.dataset);
  wanted.data_dir = training::resolved_data_dir(wanted.dataset, wanted.data_dir);
  training::require_same_run(wanted, extras.begun);
  training::require_own_length(run, wanted);
  training::check(wanted);
  set_thread_count(static_cast<int>(wanted.threads));
  training::train(wanted, run, extras, observer);
}

void train(const fs::path& out, bool overwrite, bool resume, py::object report, py::object on_step,
           const py::kwargs& given) {
  if (overwrite && resume) throw py::value_error("overwrite deletes the run that resume would go on with");
  const py::kwargs settings = py::reinterpret_steal<py::kwargs>(PyDict_Copy(given.ptr()));
  const std::optional<GivenData> data = take_data(settings);
  if (data && resume) throw py::value_error("resume takes the arrays that the run keeps; leave dataset out");
  Json json = to_json(settings);
  if (data) put_data(*data, out, json);
  Observer observer(std::move(report), std::move(on_step));
  observer.follow([&] { resume ? train_on(out, json, observer) : train_new(out, overwrite, json, data, observer); });
}

}  // namespace

void bind_train(py::module_& module) {
  module.def(
      "train", &train, py::arg("out"), py::arg("overwrite") = false, py::arg("resume") = false,
      py::arg("report") = py::none(), py::arg("on_step") = py::none(),
      "`miniqat train`: keywords are its flags, with `_` for `-`; the run is kept in the folder `out`.\n"
      "dataset: a name, a path, a Dataset, of which one example in six is for the test, or a tuple of two,\n"
      "training and test; the run keeps their arrays, and standardises numbers. report(text) hears what the program would print,\n"
      "on_step(step, steps, loss) each step. After a KeyboardInterrupt, or what these functions raise, the\n"
      "checkpoint is written: resume=True goes on.");
}

}  // namespace miniqat::python
