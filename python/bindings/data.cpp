// Data sets.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/array_numbers.h"
#include "datasets/arrays/array_pictures.h"
#include "datasets/class_counts.h"
#include "datasets/known_datasets.h"
#include "datasets/standardise.h"
#include "python/bindings/handles.h"
#include "python/bindings/values.h"
#include "training/settings/settings.h"
#include "training/settings/settings_of_data.h"
#include "training/settings/train_settings.h"

namespace miniqat::python {

namespace {

using datasets::Dataset;
using datasets::NumpyArray;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw py::value_error(concat(parts...));
}

/// plain_array(), of at least 32 bits where these are floats.
py::array plain_numbers(const py::object& given, const std::string& what) {
  const py::array array = plain_array(given, what);
  return array.dtype().equal(py::dtype("float16")) ? py::array(call_method(array, "astype", py::make_tuple("float32")))
                                                   : array;
}

/// As a file of NumPy's would be read, of that shape.
NumpyArray file_like(const py::array& array, const std::vector<std::int64_t>& shape) {
  if (array.itemsize() > 8) throw py::type_error("numbers of more than 64 bits cannot be taken");
  return {.kind = array.dtype().kind(),
          .item = static_cast<int>(array.itemsize()),
          .shape = shape,
          .bytes = std::string(static_cast<const char*>(array.data()), static_cast<std::size_t>(array.nbytes()))};
}

/// What the readers of files refuse is a wrong value here.
template <class Read>
auto as_value_error(const std::string& argument, const Read& read, const char* remedy = "") {
  try {
    return read();
  } catch (const Error& error) {
    const std::string text = error.what();
    refuse(text.starts_with(argument) ? "" : argument + ": ", text, remedy);
  }
}

void require_shape_of_pictures(const Shape& shape) {
  const bool are_pictures = (shape.rank() == 3 || shape.rank() == 4) && shape.elements() > 0;
  if (!are_pictures)
    refuse("images has the shape ", shape, "; pictures are [n, h, w, c] or [n, h, w], at least one",
           shape.rank() == 2 && shape.elements() > 0 ? ": images.reshape(n, h, w, c)" : "");
  const auto is_colour = [](std::int64_t channels) { return channels == 1 || channels == 3; };
  if (shape.rank() == 4 && is_colour(shape[1]) && !is_colour(shape[3]) && shape[3] > 4)
    refuse("images has the shape ", shape, "; channels come last here: images.transpose(0, 2, 3, 1)");
}

Shape checked_shape(const py::array& array, const char* argument) {
  const std::vector<std::int64_t> extents(array.shape(), array.shape() + array.ndim());
  return as_value_error(argument, [&] { return Shape(std::span<const std::int64_t>(extents)); });
}

/// The place of the only 1 among zeros in each row.
Tensor labels_of_rows(const py::array& rows, const Shape& shape) {
  const Borrowed numbers = borrow(rows, DType::kFloat64, "labels");
  Tensor labels(Shape{shape[0]}, DType::kInt32);
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const auto row = numbers.tensor.values<double>().subspan(i * shape[1], shape[1]);
    const auto ones = std::ranges::count(row, 1.0), zeros = std::ranges::count(row, 0.0);
    if (ones != 1 || zeros != shape[1] - 1)
      refuse("labels has the shape ", shape, ", and row ", i,
             " is not one 1 among zeros; give one-hot rows, or the numbers of classes: labels.argmax(axis=1)");
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(std::ranges::find(row, 1.0) - row.begin());
  }
  return labels;
}

/// "but there are 3 classes, from 0 to 2"
std::string classes_text(std::int64_t classes, bool are_given) {
  return concat("but ", are_given ? "there are " : "class_names has ", counted(classes, "class"), ", from 0 to ",
                classes - 1);
}

void require_not_negative(const py::array& labels, const std::optional<std::int64_t>& classes, std::int64_t named) {
  const py::object least = py::int_(call_method(labels, "min"));
  if (least >= py::int_(0)) return;
  const std::int64_t known = classes ? *classes : named;
  refuse("labels[", std::string(py::str(call_method(labels, "argmin"))), "] is ", std::string(py::str(least)), ", ",
         known > 0 ? classes_text(known, classes.has_value()) : "but classes are counted from 0 on");
}

/// [n] int32, a copy. One-hot rows say how many classes there are. `named`: classes with a name.
Tensor labels_from(const ArrayLike& given, std::optional<std::int64_t>& classes, std::int64_t named) {
  const py::array array = plain_array(given, "labels");
  const Shape shape = checked_shape(array, "labels");
  if (shape.rank() < 1 || shape.rank() > 2 || shape.elements() == 0)
    refuse("labels has the shape ", shape, "; labels are [n] or [n, 1] integers, or one-hot rows, [n, classes]");
  if (shape.rank() == 2 && shape[1] > 1) {
    if (!classes) classes = shape[1];
    return labels_of_rows(array, shape);
  }
  if (array.dtype().kind() == 'f')
    throw py::type_error(concat("labels must be integers, not ",
                                std::string(py::str(py::object(array.dtype().attr("name")))), ": labels.astype(int)"));
  require_not_negative(array, classes, named);
  return as_value_error("labels", [&] { return datasets::labels_of(file_like(array, {shape[0], 1}), "labels"); });
}

int classes_for(const Dataset& dataset, const std::optional<std::int64_t>& wanted) {
  const auto labels = dataset.labels.values<std::int32_t>();
  const auto most = std::ranges::max_element(labels);
  const auto named = std::ssize(dataset.class_names);
  const std::int64_t classes = wanted ? *wanted : named > 0 ? named : *most + 1;
  if (classes < 1 || classes > datasets::kMostClasses)
    refuse("classes must be 1 to ", datasets::kMostClasses, ", is ", classes);
  if (*most >= classes)
    refuse("labels[", most - labels.begin(), "] is ", *most, ", ", classes_text(classes, wanted.has_value()));
  if (named > 0 && named != classes)
    refuse("class_names has ", counted(named, "name"), " for ", counted(classes, "class"), "; give a name for each");
  for (const std::string& name : dataset.class_names)
    if (printable(name) != name) refuse("class_names: ", quote(name), " has control characters");
  return static_cast<int>(classes);
}

/// The array as a reader of files sees it. ValueError if float32 does not hold its integers.
NumpyArray array_file(const py::object& given, const std::string& what) {
  const py::array array = plain_numbers(given, what);
  if (array.dtype().kind() != 'f') borrow(array, DType::kFloat32, what);
  return file_like(array, {array.shape(), array.shape() + array.ndim()});
}

}  // namespace

Tensor picture_bytes(const ArrayLike& images, std::vector<std::string>& notes) {
  const py::array array = plain_numbers(images, "images");
  const Shape shape = checked_shape(array, "images");
  require_shape_of_pictures(shape);
  const Shape pictures{shape[0], shape[1], shape[2], shape.rank() == 4 ? shape[3] : 1};
  Tensor bytes(pictures, DType::kUInt8);
  if (array.dtype().equal(py::dtype("uint8"))) {
    std::memcpy(bytes.raw(), array.data(), bytes.bytes());
    return bytes;
  }
  const NumpyArray numbers = file_like(array, {shape[0], 1, shape.elements() / shape[0]});
  return as_value_error(
      "images", [&] { return datasets::pictures_of(numbers, "images", &notes).reshaped(pictures); },
      numbers.kind == 'f' ? ". For a mean and a deviation give bytes, scale and zero_point" : "");
}

Tensor checked_numbers(const ArrayLike& numbers, const std::string& what, std::vector<std::string>& notes) {
  const NumpyArray given = array_file(numbers, what);
  return as_value_error(what, [&] { return datasets::numbers_of(given, what, notes); });
}

void warn_in_python(const std::vector<std::string>& notes) {
  constexpr std::string_view kMark = "note: ";
  for (const std::string& note : notes)
    if (const std::string text = printable(note.starts_with(kMark) ? note.substr(kMark.size()) : note);
        PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0)
      throw py::error_already_set();
}

namespace {

/// A data set of copies of the arrays. Notes on what their conversion to bytes costs become warnings.
Dataset from_arrays(const ArrayLike& images, const ArrayLike& labels, std::optional<std::int64_t> classes, double scale,
                    std::int64_t zero_point, const std::vector<std::string>& class_names) {
  if (!std::isfinite(static_cast<float>(scale)) || static_cast<float>(scale) <= 0)
    refuse("scale must be a positive number, is ", exact(scale));
  if (zero_point < 0 || zero_point > 255) refuse("zero_point is the byte of 0: 0 to 255, not ", zero_point);
  std::vector<std::string> notes;
  Dataset made{.name = "arrays",
               .images = picture_bytes(images, notes),
               .labels = labels_from(labels, classes, std::ssize(class_names)),
               .scale = static_cast<float>(scale),
               .zero_point = static_cast<int>(zero_point),
               .class_names = class_names};
  if (made.labels.elements() != made.size())
    refuse("images has ", counted(made.size(), "picture"), ", labels is for ", made.labels.elements());
  made.classes = classes_for(made, classes);
  if (notes.empty())
    if (std::string note = datasets::note_on_levels(made, "given"); !note.empty()) notes.push_back(std::move(note));
  warn_in_python(notes);
  return made;
}

/// A data set of copies of numbers, as they are, and of what is to be predicted.
Dataset of_numbers(const ArrayLike& x, const ArrayLike& y, const std::string& answers,
                   const std::vector<std::string>& class_names) {
  const auto names = names_of(datasets::Answers());
  const auto wanted = std::ranges::find(names, answers);
  if (wanted == names.end()) fail_unknown("answers", answers, names);
  datasets::PartData part;
  Dataset made{.name = "arrays", .classes = 0};
  std::vector<std::string> notes;
  made.images = checked_numbers(x, "x", notes);
  if (!y.is_none()) {
    const NumpyArray given = array_file(y, "y");
    const auto as = static_cast<datasets::Answers>(wanted - names.begin());
    as_value_error("y", [&] { datasets::put_answers(given, "y", as, part, notes); });
  }
  made.labels = part.labels;
  made.targets = part.targets;
  for (const Tensor& tensor : {made.labels, made.targets})
    if (tensor.defined() && tensor.shape()[0] != made.size())
      refuse("x has ", counted(made.size(), "example"), ", y is for ", tensor.shape()[0]);
  warn_in_python(notes);
  if (!made.has_classes()) {
    if (!class_names.empty()) refuse("class_names: y has no classes");
    return made;
  }
  made.class_names = class_names;
  made.classes = classes_for(made, {});
  return made;
}

/// A copy with numbers and targets standardised, by their own means and deviations or by those of another data set.
Dataset standardised(const Dataset& self, const Dataset* like) {
  if (self.has_pictures()) refuse("pictures are not standardised; their grid is scale and zero_point");
  if (self.standard) refuse("the numbers are standardised already");
  if (like != nullptr && !like->standard) refuse("like is not standardised");
  datasets::Splits both{.train = self, .test = self};
  datasets::NumberOptions options;
  if (like != nullptr) {
    options.standard = like->standard;
    options.target_standard = like->target_standard;
  }
  datasets::standardise(both, options);
  return both.train;
}

/// Reads settings of numbers and sounds, by their names.
void take_keywords(const py::kwargs& keywords, training::TrainSettings& how) {
  std::vector<std::string> known;
  const auto note_name = [&](const char* name, auto, const char*) { known.emplace_back(name); };
  training::visit_table(training::settings_of_numbers(), note_name);
  training::SoundSettings::visit(note_name);
  const nlohmann::ordered_json given = to_json(keywords);
  for (const auto& item : given.items())
    if (std::ranges::find(known, item.key()) == known.end())
      throw py::type_error(unknown_name("keyword", item.key(), known));
  training::settings_from_json(given, how, "load");
  for (const auto& item : given.items()) how.given.insert(item.key());
}

py::tuple load(const std::filesystem::path& name_or_path, const std::filesystem::path& data_dir,
               std::optional<std::int64_t> train_size, std::optional<std::int64_t> test_size, std::uint64_t seed,
               bool skip_broken, const std::string& image_size, const std::string& colour, double mean, double std,
               const py::kwargs& keywords) {
  const std::string name = name_or_path.string();
  training::TrainSettings how;
  take_keywords(keywords, how);
  training::check_dataset(name, data_dir.string());
  const bool is_drawn = !datasets::is_path(name) && !datasets::find_dataset(name).has_files;
  if ((train_size || test_size) && !is_drawn)
    refuse(train_size ? "train_size" : "test_size", " is for data that miniqat draws, and ", name, " has its own");
  const datasets::Splits splits = unlocked([&] {
    how.dataset = name;
    how.image_size = image_size;
    how.colour = colour;
    how.mean = mean;
    how.deviation = std;
    how.skip_broken = skip_broken;
    check_limits(training::settings_of_numbers(), how);
    how.sounds.check(name);
    return datasets::load(name, data_dir,
                          {.seed = seed,
                           .train_size = train_size,
                           .test_size = test_size,
                           .snr_db = how.sounds.snr_db,
                           .accept_kind = [&](datasets::DataKind kind) { training::require_settings_of(kind, how); },
                           .pictures = training::picture_options(how),
                           .numbers = training::number_options(how),
                           .sounds = how.sounds.options(name),
                           .variation = how.sounds.variation(),
                           .skip_broken = skip_broken});
  });
  std::vector<std::string> notes = splits.remarks().notes;
  if (splits.validation)
    notes.push_back(concat("note: ", name, ": left out the validation part, ",
                           counted(splits.validation->size(), splits.validation->noun())));
  warn_in_python(notes);
  return py::make_tuple(splits.train, splits.test);
}

py::object view_or_none(const Tensor& tensor) { return tensor.defined() ? py::object(to_view(tensor)) : py::none(); }

/// The means, or the deviations, as an array; None without.
py::object channels_of(const std::shared_ptr<const datasets::Standard>& standard,
                       std::vector<float> datasets::Standard::*numbers) {
  if (!standard) return py::none();
  const std::vector<float>& values = (*standard).*numbers;
  return to_array(Tensor::from({std::ssize(values)}, values));
}

void bind_dataset(py::module_& module) {
  using datasets::Standard;
  py::class_<Dataset>(module, "Dataset",
                      "Pictures as bytes, [n, h, w, c], or numbers, [n, ...], and what is to be said of them.")
      .def(py::init(&from_arrays), py::arg("images"), py::arg("labels"), py::arg("classes") = py::none(),
           py::arg("scale") = 1.0 / 255, py::arg("zero_point") = 0, py::arg("class_names") = std::vector<std::string>(),
           "Copies of the arrays. Pictures are bytes, floats in [0, 1] (1 becomes the byte 255; a warning says what\n"
           "rounding costs) or bools, [n, h, w, c] or [n, h, w]. Labels are integers, [n], or one-hot rows,\n"
           "[n, classes]. A pixel is (byte - zero_point) * scale.")
      .def_static("of_numbers", &of_numbers, py::arg("x"), py::arg("y") = py::none(), py::arg("answers") = "auto",
                  py::arg("class_names") = std::vector<std::string>(),
                  "Copies of numbers, [n, features], [n, steps, channels] or [n, h, w, channels], as they are, and of\n"
                  "what is to be predicted: None, classes (integers, [n]), numbers (floats, [n] or [n, k]) or several\n"
                  "labels (integers 0 and 1, [n, k]). answers: \"classes\" or \"targets\" where both are possible.")
      .def("standardised", &standardised, py::arg("like") = py::none(),
           "A copy of numbers, and of numbers to predict, as (x - mean) / std of each channel: with their own means\n"
           "and deviations, or with those of another data set, the training part of a test part.")
      .def_property_readonly(
          "images", [](const Dataset& self) { return to_view(self.images); },
          "[n, h, w, c] uint8 of pictures, [n, ...] float32 of numbers; read-only.")
      .def_property_readonly(
          "labels", [](const Dataset& self) { return view_or_none(self.labels); },
          "[n] int32, read-only; None without classes.")
      .def_property_readonly(
          "targets", [](const Dataset& self) { return view_or_none(self.targets); },
          "[n, k] float32, read-only: numbers to predict, or labels of 0 and 1. None without.")
      .def_property_readonly(
          "mean", [](const Dataset& self) { return channels_of(self.standard, &Standard::mean); },
          "What numbers were standardised with, for each channel; None where they are as they were given.")
      .def_property_readonly(
          "std", [](const Dataset& self) { return channels_of(self.standard, &Standard::deviation); },
          "The deviations to these means.")
      .def_property_readonly(
          "target_mean", [](const Dataset& self) { return channels_of(self.target_standard, &Standard::mean); },
          "What targets were standardised with.")
      .def_property_readonly(
          "target_std", [](const Dataset& self) { return channels_of(self.target_standard, &Standard::deviation); },
          "The deviations to these means.")
      .def_readonly("classes", &Dataset::classes, "The number of classes; 0 without.")
      .def_readonly("class_names", &Dataset::class_names, "One for each class, if the data names them.")
      .def_readonly("scale", &Dataset::scale, "Of a byte: the input's grid.")
      .def_readonly("zero_point", &Dataset::zero_point, "The byte of 0.")
      .def("__len__", &Dataset::size, "The number of examples.")
      .def("__repr__", [](const Dataset& self) {
        const std::string answers =
            self.targets.defined() ? concat("targets=", self.targets.shape()) : concat("classes=", self.classes);
        return concat("<miniqat.Dataset images=", self.images.shape(), " ", answers, ">");
      });
}

}  // namespace

void bind_data(py::module_& module) {
  bind_dataset(module);
  module.def(
      "load", &load, py::arg("name"), py::arg("data_dir") = "", py::arg("train_size") = py::none(),
      py::arg("test_size") = py::none(), py::arg("seed") = 1, py::arg("skip_broken") = false,
      py::arg("image_size") = "", py::arg("colour") = "auto", py::arg("mean") = 0.0, py::arg("std") = 1.0,
      "(train, test) of a data set by name, or of your own files by their path (docs/data.md). Sizes and seed\n"
      "are those of data that miniqat draws, \"synthetic\", \"synthetic-sounds\" and \"synthetic-hums\"; None: the\n"
      "usual size. Of your own files image_size (\"HxW\"), colour (\"grey\", \"rgb\"), mean and std say how pictures\n"
      "are read, as the flags of `miniqat train` do, and skip_broken leaves out those that cannot be read. What is\n"
      "left out is a warning. Keywords are the flags of `miniqat train` for numbers and sounds: target, inputs,\n"
      "answers, no_standardise, pad_to, group_by, test_groups, features, frames, sample_rate, seconds, window_ms,\n"
      "stride_ms, bands, coefficients, low_hz, high_hz, mel_scale, silence, snr_db, shift_ms, gain_db, noise,\n"
      "noise_db.");
}

}  // namespace miniqat::python
