// Data sets and batches.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "core/error.h"
#include "core/text/quote.h"
#include "datasets/loader.h"
#include "python/bindings/handles.h"

namespace miniqat::python {
namespace {

using datasets::Dataset;
using datasets::Loader;

DatasetHandle from_arrays(const ArrayLike& images, const ArrayLike& labels, std::optional<int> classes, float scale,
                          int zero_point, const std::vector<std::string>& class_names) {
  Borrowed pictures = borrow(images, DType::kUInt8);
  Borrowed numbers = borrow(labels, DType::kInt32);
  if (!classes) {
    const auto values = numbers.tensor.values<std::int32_t>();
    classes = class_names.empty() && !values.empty() ? *std::ranges::max_element(values) + 1
                                                     : static_cast<int>(class_names.size());
  }
  DatasetHandle made{{.name = "arrays",
                      .images = pictures.tensor,
                      .labels = numbers.tensor,
                      .classes = *classes,
                      .scale = scale,
                      .zero_point = zero_point,
                      .class_names = class_names},
                     {std::move(pictures.keeper), std::move(numbers.keeper)}};
  made.dataset.check();
  return made;
}

py::tuple load(const std::string& name, const std::filesystem::path& data_dir, std::int64_t train_size,
               std::int64_t test_size, std::uint64_t seed, bool skip_broken) {
  const datasets::Splits splits = [&] {
    const py::gil_scoped_release open;
    return datasets::load(name, data_dir,
                          {.seed = seed, .train_size = train_size, .test_size = test_size, .skip_broken = skip_broken});
  }();
  for (const std::string& note : splits.remarks().notes)
    if (const std::string text = printable(note.substr(std::string_view("note: ").size()));
        PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0)
      throw py::error_already_set();
  return py::make_tuple(DatasetHandle{splits.train}, DatasetHandle{splits.test});
}

py::tuple next(Loader& loader) {
  Tensor images, labels;
  {
    const py::gil_scoped_release open;
    const datasets::Batch& batch = loader.next();
    images = batch.images.clone();
    labels = batch.labels.clone();
  }
  return py::make_tuple(to_array(images), to_array(labels));
}

void bind_dataset(py::module_& module) {
  py::class_<DatasetHandle>(module, "Dataset", "Pictures as bytes, [n, h, w, c], and labels, [n].")
      .def(py::init(&from_arrays), py::arg("images"), py::arg("labels"), py::arg("classes") = py::none(),
           py::arg("scale") = 1.0F / 255, py::arg("zero_point") = 0,
           py::arg("class_names") = std::vector<std::string>(),
           "Over the memory of the arrays (uint8 and int32). A pixel is (byte - zero_point) * scale.")
      .def_property_readonly(
          "images", [](const py::object& self) { return to_view(self.cast<DatasetHandle&>().dataset.images, self); },
          "[n, h, w, c] uint8, read-only.")
      .def_property_readonly(
          "labels", [](const py::object& self) { return to_view(self.cast<DatasetHandle&>().dataset.labels, self); },
          "[n] int32, read-only.")
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
      py::arg("test_size") = 10000, py::arg("seed") = 1, py::arg("skip_broken") = false,
      "(train, test) of a data set by name, or of your own files by their path (docs/data.md). Sizes and seed\n"
      "are those of the digits that miniqat draws, \"synthetic\". skip_broken leaves out pictures that cannot be\n"
      "read. What is left out is a warning.");
  py::class_<Loader>(
      module, "Loader",
      "Endless shuffled batches, prepared ahead by a thread: an iterator over (images, labels), float32\n"
      "and int32. Batch i depends on the data set, the options and i alone.")
      .def(py::init([](const DatasetHandle& dataset, std::int64_t batch_size, bool shuffle, std::uint64_t seed,
                       std::int64_t first_batch) {
             return std::make_unique<Loader>(
                 dataset.dataset,
                 Loader::Options{
                     .batch_size = batch_size, .shuffle = shuffle, .seed = seed, .first_batch = first_batch});
           }),
           py::arg("dataset"), py::arg("batch_size") = 128, py::arg("shuffle") = true, py::arg("seed") = 1,
           py::arg("first_batch") = 0, py::keep_alive<1, 2>(),
           "An epoch is batches_per_epoch batches; examples left over sit it out.")
      .def_property_readonly("batches_per_epoch", &Loader::batches_per_epoch, "Whole batches of the data set.")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &next);
}

}  // namespace miniqat::python
