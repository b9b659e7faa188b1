// Classifier: the models that have a name, and the loss.

#include "models/models.h"

#include <pybind11/stl.h>

#include "python/bindings/handles.h"

namespace miniqat::python {
namespace {

ClassifierHandle make_classifier(const std::string& model, const DatasetHandle& dataset, std::int64_t batch_size,
                                 double width, const std::string& output) {
  const Unlocked open;
  return ClassifierHandle(training::make_classifier(
      {.model = model, .width = width, .batch_size = batch_size, .output = output}, dataset.dataset));
}

py::tuple add_loss(const ClassifierHandle& self, double label_smoothing, const std::vector<double>& class_weights) {
  const training::TrainingEnds ends =
      self.graph->locked([&](Graph&) { return training::add_loss(*self.whole, label_smoothing, class_weights); });
  return py::make_tuple(OutputHandle{self.graph, ends.labels.name()}, OutputHandle{self.graph, ends.loss.name()});
}

}  // namespace

void bind_models(py::module_& module) {
  py::class_<ClassifierHandle>(module, "Classifier", "A network that tells pictures apart, with its ends.")
      .def_readonly("graph", &ClassifierHandle::graph, "The graph.")
      .def_property_readonly(
          "images",
          [](const ClassifierHandle& self) {
            return OutputHandle{self.graph, self.graph->locked([&](Graph&) { return self.whole->images.name(); })};
          },
          "The placeholder of the pictures, [n, h, w, c] float32.")
      .def_property_readonly(
          "logits",
          [](const ClassifierHandle& self) {
            return OutputHandle{self.graph, self.graph->locked([&](Graph&) { return self.whole->logits.name(); })};
          },
          "[n, classes], the graph's first output.")
      .def(
          "add_loss", &add_loss, py::arg("label_smoothing") = 0.0, py::arg("class_weights") = std::vector<double>(),
          "Adds a placeholder for labels, [n] int32, and the mean cross entropy, where a picture counts as much as the\n"
          "weight of its class says: (labels, loss).")
      .def(
          "evaluation",
          [](const ClassifierHandle& self) {
            return ClassifierHandle(self.graph->locked([&](Graph&) { return training::evaluation_of(*self.whole); }));
          },
          "A copy for evaluation, without loss, of a graph that create_training_graph() has rewritten. Its variables\n"
          "have the same names.")
      .def(
          "without_loss",
          [](const ClassifierHandle& self) {
            return ClassifierHandle(self.graph->locked([&](Graph&) { return training::without_loss(*self.whole); }));
          },
          "A copy without the loss.");
  module.def(
      "make_classifier", &make_classifier, py::arg("model"), py::arg("dataset"), py::arg("batch_size") = 128,
      py::arg("width") = 1.0, py::arg("output") = "",
      "A model by name, or from a .json or .onnx file, for the pictures and classes of a data set. output: of a\n"
      "file with several outputs the one that has the logits; default: the first.");
  module.def(
      "find_classifier",
      [](const std::shared_ptr<GraphHandle>& graph) {
        return ClassifierHandle(
            training::find_classifier(graph->locked([](Graph& of) { return of.clone(); }), "the graph"));
      },
      py::arg("graph"), "A copy of a graph as a classifier: its only float placeholder of rank 4, its first output.");
  module.def("model_names", &models::model_names, "The models that have a name.");
}

}  // namespace miniqat::python
