// Data sets and batches.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/arrays/array_pictures.h"
#include "datasets/class_counts.h"
#include "datasets/loader.h"
#include "python/bindings/handles.h"
#include "training/settings/train_settings.h"

namespace miniqat::python {

using datasets::Loader;

/// One thread at a time, and only in the process that made it: a fork leaves the loader's thread behind.
struct LoaderHandle {
  LoaderHandle(const datasets::Dataset& dataset, const Loader::Options& options)
      : loader(std::make_unique<Loader>(dataset, options)) {}
  ~LoaderHandle() {
    // It would wait for its thread.
    if (!is_here()) static_cast<void>(loader.release());
  }
  LoaderHandle(const LoaderHandle&) = delete;
  bool is_here() const { return process == getpid(); }

  std::unique_ptr<Loader> loader;
  OneAtATime turns;
  pid_t process = getpid();
};
template <>
inline constexpr bool kIsBound<LoaderHandle> = true;

namespace {

using datasets::Dataset;
using datasets::NumpyArray;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw py::value_error(concat(parts...));
}

/// As a file of NumPy's would be read, of the shape [rows, columns].
NumpyArray file_like(const py::array& array, std::int64_t rows, std::int64_t columns) {
  if (array.itemsize() > 8) throw py::type_error("numbers of more than 64 bits cannot be taken");
  return {.kind = array.dtype().kind(),
          .item = static_cast<int>(array.itemsize()),
          .shape = {rows, columns},
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
  return as_value_error("labels", [&] { return datasets::labels_of(file_like(array, shape[0], 1), "labels"); });
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
  return static_cast<int>(classes);
}

}  // namespace

Tensor picture_bytes(const ArrayLike& images, std::vector<std::string>& notes) {
  py::array array = plain_array(images, "images");
  if (array.dtype().equal(py::dtype("float16"))) array = call_method(array, "astype", py::make_tuple("float32"));
  const Shape shape = checked_shape(array, "images");
  require_shape_of_pictures(shape);
  const Shape pictures{shape[0], shape[1], shape[2], shape.rank() == 4 ? shape[3] : 1};
  Tensor bytes(pictures, DType::kUInt8);
  if (array.dtype().equal(py::dtype("uint8"))) {
    std::memcpy(bytes.raw(), array.data(), bytes.bytes());
    return bytes;
  }
  NumpyArray numbers = file_like(array, shape[0], 1);
  numbers.shape = {shape[0], 1, shape.elements() / shape[0]};
  return as_value_error(
      "images", [&] { return datasets::pictures_of(numbers, "images", &notes).reshaped(pictures); },
      numbers.kind == 'f' ? ". For a mean and a deviation give bytes, scale and zero_point" : "");
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
    refuse("images has ", made.size(), " pictures, labels is for ", made.labels.elements());
  made.classes = classes_for(made, classes);
  if (notes.empty())
    if (std::string note = datasets::note_on_levels(made, "given"); !note.empty()) notes.push_back(std::move(note));
  warn_in_python(notes);
  return made;
}

py::tuple load(const std::string& name, const std::filesystem::path& data_dir, std::int64_t train_size,
               std::int64_t test_size, std::uint64_t seed, bool skip_broken, const std::string& image_size,
               const std::string& colour, double mean, double std) {
  const datasets::Splits splits = unlocked([&] {
    training::TrainSettings how;
    how.dataset = name;
    how.image_size = image_size;
    how.colour = colour;
    how.mean = mean;
    how.deviation = std;
    return datasets::load(name, data_dir,
                          {.seed = seed,
                           .train_size = train_size,
                           .test_size = test_size,
                           .pictures = training::picture_options(how),
                           .skip_broken = skip_broken});
  });
  warn_in_python(splits.remarks().notes);
  return py::make_tuple(splits.train, splits.test);
}

py::tuple next(LoaderHandle& self) {
  if (!self.is_here()) fail("this Loader is of another process, and so is its thread: make one here");
  Tensor images, labels;
  {
    const Unlocked open;
    const OneAtATime::Turn turn(self.turns);
    const datasets::Batch& batch = self.loader->next();
    images = numbers_of(batch.images);
    labels = batch.labels.clone();
  }
  return py::make_tuple(to_array(images), to_array(labels));
}

void bind_dataset(py::module_& module) {
  py::class_<Dataset>(module, "Dataset", "Pictures as bytes, [n, h, w, c], and labels, [n].")
      .def(py::init(&from_arrays), py::arg("images"), py::arg("labels"), py::arg("classes") = py::none(),
           py::arg("scale") = 1.0 / 255, py::arg("zero_point") = 0, py::arg("class_names") = std::vector<std::string>(),
           "Copies of the arrays. Pictures are bytes, floats in [0, 1] (1 becomes the byte 255; a warning says what\n"
           "rounding costs) or bools, [n, h, w, c] or [n, h, w]. Labels are integers, [n], or one-hot rows,\n"
           "[n, classes]. A pixel is (byte - zero_point) * scale.")
      .def_property_readonly(
          "images", [](const Dataset& self) { return to_view(self.images); }, "[n, h, w, c] uint8, read-only.")
      .def_property_readonly(
          "labels", [](const Dataset& self) { return to_view(self.labels); }, "[n] int32, read-only.")
      .def_readonly("classes", &Dataset::classes, "The number of classes.")
      .def_readonly("class_names", &Dataset::class_names, "One for each class, if the data names them.")
      .def_readonly("scale", &Dataset::scale, "Of a byte: the input's grid.")
      .def_readonly("zero_point", &Dataset::zero_point, "The byte of 0.")
      .def("__len__", &Dataset::size, "The number of examples.")
      .def("__repr__", [](const Dataset& self) {
        return concat("<miniqat.Dataset images=", self.images.shape(), " classes=", self.classes, ">");
      });
}

}  // namespace

void bind_data(py::module_& module) {
  bind_dataset(module);
  module.def(
      "load", &load, py::arg("name"), py::arg("data_dir") = "", py::arg("train_size") = 12000,
      py::arg("test_size") = 10000, py::arg("seed") = 1, py::arg("skip_broken") = false, py::arg("image_size") = "",
      py::arg("colour") = "auto", py::arg("mean") = 0.0, py::arg("std") = 1.0,
      "(train, test) of a data set by name, or of your own files by their path (docs/data.md). Sizes and seed\n"
      "are those of the digits that miniqat draws, \"synthetic\". Of your own files image_size (\"HxW\"), colour\n"
      "(\"grey\", \"rgb\"), mean and std say how pictures are read, as the flags of `miniqat train` do, and\n"
      "skip_broken leaves out those that cannot be read. What is left out is a warning.");
  py::class_<LoaderHandle>(
      module, "Loader",
      "Endless shuffled batches, prepared ahead by a thread: an iterator over (images, labels), float32\n"
      "and int32. Batch i depends on the data set, the options and i alone.")
      .def(py::init([](const Dataset& dataset, std::int64_t batch_size, bool shuffle, std::uint64_t seed,
                       std::int64_t first_batch) {
             return std::make_unique<LoaderHandle>(
                 dataset, Loader::Options{
                              .batch_size = batch_size, .shuffle = shuffle, .seed = seed, .first_batch = first_batch});
           }),
           py::arg("dataset"), py::arg("batch_size") = 128, py::arg("shuffle") = true, py::arg("seed") = 1,
           py::arg("first_batch") = 0, "An epoch is batches_per_epoch batches; examples left over sit it out.")
      .def_property_readonly(
          "batches_per_epoch", [](const LoaderHandle& self) { return self.loader->batches_per_epoch(); },
          "Whole batches of the data set.")
      .def("__iter__", [](const py::object& self) { return require_initialized(self), self; })
      .def("__next__", &next);
}

}  // namespace miniqat::python
