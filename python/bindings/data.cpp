// Data sets and batches.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "core/text/error.h"
#include "datasets/loader.h"
#include "python/bindings/dataset_arrays.h"
#include "python/bindings/handles.h"
#include "training/settings/train_settings.h"

namespace miniqat::python {

using datasets::Loader;

/// One thread at a time.
struct LoaderHandle {
  LoaderHandle(const datasets::Dataset& dataset, const Loader::Options& options) : loader(dataset, options) {}

  Loader loader;
  OneAtATime turns;
};
template <>
inline constexpr bool kIsBound<LoaderHandle> = true;

namespace {

DatasetHandle from_arrays(const ArrayLike& images, const ArrayLike& labels, std::optional<std::int64_t> classes,
                          double scale, std::int64_t zero_point, const std::vector<std::string>& class_names) {
  return {dataset_of({images, labels, classes, scale, zero_point, class_names})};
}

py::tuple load(const std::string& name, const std::filesystem::path& data_dir, std::int64_t train_size,
               std::int64_t test_size, std::uint64_t seed, bool skip_broken, const std::string& image_size,
               const std::string& colour, double mean, double std) {
  const datasets::Splits splits = [&] {
    const Unlocked open;
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
  }();
  warn_in_python(splits.remarks().notes);
  return py::make_tuple(DatasetHandle{splits.train}, DatasetHandle{splits.test});
}

py::tuple next(LoaderHandle& self) {
  Tensor images, labels;
  {
    const Unlocked open;
    const OneAtATime::Turn turn(self.turns);
    const datasets::Batch& batch = self.loader.next();
    images = batch.images.clone();
    labels = batch.labels.clone();
  }
  return py::make_tuple(to_array(images), to_array(labels));
}

void bind_dataset(py::module_& module) {
  py::class_<DatasetHandle>(module, "Dataset", "Pictures as bytes, [n, h, w, c], and labels, [n].")
      .def(py::init(&from_arrays), py::arg("images"), py::arg("labels"), py::arg("classes") = py::none(),
           py::arg("scale") = 1.0 / 255, py::arg("zero_point") = 0, py::arg("class_names") = std::vector<std::string>(),
           "Copies of the arrays. Pictures are bytes, floats in [0, 1] (1 becomes the byte 255; a warning says what\n"
           "rounding costs) or bools, [n, h, w, c] or [n, h, w]. Labels are integers, [n], or one-hot rows,\n"
           "[n, classes]. A pixel is (byte - zero_point) * scale.")
      .def_property_readonly(
          "images", [](const DatasetHandle& self) { return to_view(self.dataset.images); },
          "[n, h, w, c] uint8, read-only.")
      .def_property_readonly(
          "labels", [](const DatasetHandle& self) { return to_view(self.dataset.labels); }, "[n] int32, read-only.")
      .def_property_readonly(
          "classes", [](const DatasetHandle& self) { return self.dataset.classes; }, "The number of classes.")
      .def_property_readonly(
          "class_names", [](const DatasetHandle& self) { return self.dataset.class_names; },
          "One for each class, if the data names them.")
      .def_property_readonly(
          "scale", [](const DatasetHandle& self) { return self.dataset.scale; }, "Of a byte: the input's grid.")
      .def_property_readonly(
          "zero_point", [](const DatasetHandle& self) { return self.dataset.zero_point; }, "The byte of 0.")
      .def(
          "__len__", [](const DatasetHandle& self) { return self.dataset.size(); }, "The number of examples.")
      .def("__repr__", [](const DatasetHandle& self) {
        return concat("<miniqat.Dataset images=", self.dataset.images.shape(), " classes=", self.dataset.classes, ">");
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
      .def(py::init([](const DatasetHandle& dataset, std::int64_t batch_size, bool shuffle, std::uint64_t seed,
                       std::int64_t first_batch) {
             return std::make_unique<LoaderHandle>(
                 dataset.dataset,
                 Loader::Options{
                     .batch_size = batch_size, .shuffle = shuffle, .seed = seed, .first_batch = first_batch});
           }),
           py::arg("dataset"), py::arg("batch_size") = 128, py::arg("shuffle") = true, py::arg("seed") = 1,
           py::arg("first_batch") = 0, "An epoch is batches_per_epoch batches; examples left over sit it out.")
      .def_property_readonly(
          "batches_per_epoch", [](const LoaderHandle& self) { return self.loader.batches_per_epoch(); },
          "Whole batches of the data set.")
      .def("__iter__", [](const py::object& self) { return require_initialized(self), self; })
      .def("__next__", &next);
}

}  // namespace miniqat::python
