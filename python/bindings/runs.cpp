// Commands about runs that are there: report, predict.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/suggest.h"
#include "python/bindings/handles.h"
#include "python/bindings/keywords.h"
#include "python/bindings/observer.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/said.h"
#include "training/model_source.h"
#include "training/report/page.h"
#include "training/run/asked_pictures.h"
#include "training/run/data_of_run.h"
#include "training/settings/usage_error.h"

namespace miniqat::python {
namespace {

using training::Prediction;
namespace fs = std::filesystem;

std::string path_from(py::handle given, const char* refusal) {
  try {
    return given.cast<fs::path>().string();
  } catch (const py::cast_error&) {
    throw py::type_error(refusal);
  }
}

/// One path, or several.
std::vector<std::string> runs_from(const py::object& given) {
  constexpr const char* kRefusal = "runs must be paths";
  if (py::isinstance<py::str>(given) || py::hasattr(given, "__fspath__")) return {path_from(given, kRefusal)};
  if (!py::isinstance<py::sequence>(given)) throw py::type_error(kRefusal);
  std::vector<std::string> paths;
  for (const py::handle one : given) paths.push_back(path_from(one, kRefusal));
  return paths;
}

std::vector<std::string> report(const py::object& runs, const fs::path& out, const std::string& dataset,
                                const fs::path& data_dir, const std::optional<fs::path>& sensitivity,
                                std::int64_t pictures, std::int64_t examples, int threads) {
  if (pictures < 0 || examples < 1 || threads < 0)
    throw py::value_error("pictures and threads must not be negative, and examples at least 1");
  const training::ReportRequest request{.runs = runs_from(runs),
                                        .dataset = dataset,
                                        .data_dir = data_dir.string(),
                                        .sensitivity = sensitivity ? sensitivity->string() : "",
                                        .pictures = pictures,
                                        .examples = examples,
                                        .threads = threads};
  if (request.runs.empty()) throw py::value_error("runs names no run");
  training::require_page_name(out);
  std::vector<std::string> notes;
  const KeptThreadCount kept;
  const Unlocked open;
  require_writable(out);
  const training::Report gathered = training::gather_report(request, [](const std::string&) { check_signals(); });
  write_file_atomically(out, training::report_page(gathered));
  for (const training::RunReport& run : gathered.runs)
    for (const std::string& note : run.notes) notes.push_back(with_keywords(concat(run.name, ": ", note)));
  return notes;
}

/// The examples of an array, for the network of a run: pictures, or numbers that it standardises as its own. Nobody
/// knows their labels.
training::AskedPictures examples_from_array(const training::RunSource& run, const ArrayLike& array,
                                            std::vector<std::string>& notes) {
  const training::TrainedOn network = unlocked([&] { return training::trained_on(run); });
  training::AskedPictures examples{.data = {.name = "examples"}, .from_files = true};
  datasets::Dataset& data = examples.data;
  if (const std::optional<integer::Grid> grid = unlocked([&] { return training::recorded_input(run); })) {
    data.images = picture_bytes(array, notes);
    data.scale = grid->scale;
    data.zero_point = grid->zero_point;
  } else {
    const Tensor numbers = checked_numbers(array, "pictures", notes);
    data.images = network.standard ? datasets::standardised(numbers, *network.standard) : numbers;
  }
  training::describe_outputs(network, data);
  for (std::int64_t i = 0; i < data.size(); ++i)
    examples.asked.push_back({.word = std::to_string(i), .number = i, .first = i});
  return examples;
}

/// Numbers and paths as the words of a command line, no words for None; nothing for an array of pictures.
std::optional<std::vector<std::string>> words_from(const py::object& pictures) {
  constexpr const char* kRefusal = "pictures must be numbers of pictures, paths, or an array of pictures";
  if (pictures.is_none()) return std::vector<std::string>();
  if (py::isinstance<py::array>(pictures) && py::reinterpret_borrow<py::array>(pictures).ndim() > 1) return {};
  const auto word_of = [](py::handle one) -> std::string {
    if (PyIndex_Check(one.ptr()) != 0) return py::str(py::object(py::int_(py::reinterpret_borrow<py::object>(one))));
    return path_from(one, kRefusal);
  };
  const bool is_one = py::isinstance<py::str>(pictures) || py::hasattr(pictures, "__fspath__") ||
                      (PyIndex_Check(pictures.ptr()) != 0 && !py::isinstance<py::array>(pictures));
  if (is_one) return std::vector{word_of(pictures)};
  if (!py::isinstance<py::iterable>(pictures)) throw py::type_error(kRefusal);
  std::vector<std::string> words;
  for (const py::handle one : pictures) words.push_back(word_of(one));
  return words;
}

/// Throws UsageError: an array is what is predicted, whatever data the run has.
void refuse_settings_of_data(const std::string& dataset, const fs::path& data_dir, const std::string& split) {
  constexpr const char* kArray = "an array of examples";
  if (!dataset.empty()) training::refuse_ignored("dataset", kArray);
  if (!data_dir.empty()) training::refuse_ignored("data_dir", kArray);
  if (split != "test") training::refuse_ignored("split", kArray);
}

/// As `miniqat predict --json` has it.
py::dict prediction_of(const training::Task& task, const datasets::Dataset& data, const training::AskedPicture& asked,
                       const std::vector<Prediction>& predictions) {
  const Prediction prediction = training::said_of(asked, predictions);
  py::dict one;
  one[data.noun()] = asked.number ? py::object(py::int_(*asked.number)) : py::object(py::str(asked.word));
  one["label"] = asked.label ? py::object(py::int_(*asked.label)) : py::none();
  if (!asked.file.empty()) one["file"] = asked.file;
  if (asked.windows > 1) one["windows"] = asked.windows;
  if (!prediction.outputs.empty()) {
    if (asked.windows == 1) one["outputs"] = prediction.outputs;
    if (&task == &training::reconstruction())
      one["error"] = training::answers_to(task, data, asked, predictions).front();
    return one;
  }
  const bool decided = prediction.predicted >= 0;
  one["predicted"] = decided ? py::object(py::int_(prediction.predicted)) : py::none();
  one["class"] = decided ? py::object(py::str(data.class_name(prediction.predicted))) : py::none();
  one["score"] =
      decided ? py::object(py::float_(prediction.scores[static_cast<std::size_t>(prediction.predicted)])) : py::none();
  one["scores"] = prediction.scores;
  return one;
}

py::list predict(const fs::path& run, const py::object& pictures, bool integer, const std::string& dataset,
                 const fs::path& data_dir, const std::string& split, const std::optional<fs::path>& checkpoint) {
  const auto& known = training::split_names();
  const std::vector<std::string> splits(known.begin(), known.end());
  if (std::ranges::count(splits, split) == 0) throw py::value_error(wrong_choice("split", split, splits));
  const std::optional<std::vector<std::string>> words = words_from(pictures);
  if (words && words->empty() && !pictures.is_none()) throw py::value_error("pictures names no picture");
  if (!words) refuse_settings_of_data(dataset, data_dir, split);
  std::vector<std::string> notes;
  std::optional<training::RunSource> opened;
  {
    const Unlocked open;
    opened = training::open_run(run.string(), checkpoint ? checkpoint->string() : "");
  }
  const training::RunSource& source = *opened;
  training::AskedPictures asked;
  if (!words) asked = examples_from_array(source, py::reinterpret_borrow<ArrayLike>(pictures), notes);
  std::vector<Prediction> predictions;
  {
    const Unlocked open;
    if (words)
      asked =
          training::find_pictures(source, *words, {.dataset = dataset, .data_dir = data_dir.string(), .split = split});
    predictions = training::predict(source, asked.data, integer);
    if (!source.note.empty()) notes.push_back(with_keywords(source.note));
  }
  warn_in_python(notes);
  py::list list;
  const training::Task& task = training::task_of(source.settings);
  for (const training::AskedPicture& one : asked.asked) list.append(prediction_of(task, asked.data, one, predictions));
  return list;
}

}  // namespace

void bind_runs(py::module_& module) {
  module.def("report", &report, py::arg("runs"), py::arg("out"), py::arg("dataset") = "", py::arg("data_dir") = "",
             py::arg("sensitivity") = py::none(), py::arg("pictures") = 12, py::arg("examples") = 256,
             py::arg("threads") = 0,
             "`miniqat report`: writes the page `out` on a run or several. sensitivity: the folder that sensitivity()\n"
             "wrote. Returns notes on what a run cannot show.");
  module.def(
      "predict", &predict, py::arg("run"), py::arg("pictures") = py::none(), py::arg("integer") = false,
      py::arg("dataset") = "", py::arg("data_dir") = "", py::arg("split") = "test", py::arg("checkpoint") = py::none(),
      "`miniqat predict`: what a run says of pictures, by the simulation or with `integer` by its integers.\n"
      "pictures: numbers in the run's data set, paths of files, or an array, [n, h, w, c] uint8 or floats in\n"
      "[0, 1], or numbers in the units of the data; None: all of `dataset`. A list of dictionaries: picture (or\n"
      "example), label, predicted, class, score, scores, or of other tasks than classes outputs, in the units of the\n"
      "data, and the error of a reconstruction. A sound of several windows has their number, windows, and the means\n"
      "of what is said of them.");
}

}  // namespace miniqat::python
