// Networks and integers on data: evaluate, verify.

#include <pybind11/stl.h>

#include "python/bindings/handles.h"
#include "training/evaluate/evaluator.h"
#include "training/run/integer_source.h"
#include "training/verify/verifier.h"

namespace miniqat::python {

template <>
inline constexpr bool kIsBound<training::Evaluation> = true;
template <>
inline constexpr bool kIsBound<training::Verification> = true;

namespace {

using training::Evaluation;
using training::Verification;

/// Looks for a KeyboardInterrupt once in so many pictures.
training::OnLogits interruptible() {
  constexpr std::int64_t kPictures = 256;
  return [](std::int64_t index, std::span<const float>) {
    if (index % kPictures == 0) check_signals();
  };
}

/// A classifier's tensors are looked for in the graph that the session runs.
void require_same_graph(const SessionHandle& session, const ClassifierHandle& classifier) {
  if (session.graph == classifier.graph) return;
  const std::string images = classifier.graph->locked([&](Graph&) { return classifier.whole->images.name(); });
  fail("the session runs another graph than the classifier's: its tensor \"", images,
       "\" is not of that graph; make the session by miniqat.Session(classifier.graph)");
}

Evaluation evaluate(SessionHandle& session, const ClassifierHandle& classifier, const DatasetHandle& dataset) {
  require_same_graph(session, classifier);
  return session.locked([&](Session& of) {
    training::require_fit(*classifier.whole, dataset.dataset, "the classifier");
    return training::evaluate(of, *classifier.whole, dataset.dataset, interruptible());
  });
}

Evaluation evaluate_integers(const ModelHandle& model, const DatasetHandle& dataset) {
  const std::shared_ptr<const integer::Model> kept = model.model;
  const Unlocked open;
  training::require_pictures_fit(*kept, dataset.dataset, "the model");
  return training::evaluate_integers(*kept, dataset.dataset, interruptible());
}

Verification verify(SessionHandle& session, const ClassifierHandle& classifier, const ModelHandle& model,
                    const DatasetHandle& dataset) {
  require_same_graph(session, classifier);
  const std::shared_ptr<const integer::Model> kept = model.model;
  return session.locked([&](Session& of) {
    training::require_pictures_fit(classifier.whole->images, dataset.dataset.example_shape(), dataset.dataset.name,
                                   "the classifier");
    training::require_pictures_fit(*kept, dataset.dataset, "the model");
    return training::verify(of, *classifier.whole, *kept, dataset.dataset,
                            [](std::int64_t, std::int64_t) { check_signals(); });
  });
}

void bind_results(py::module_& module) {
  py::class_<Evaluation>(module, "Evaluation", "The result of a network on a data set.")
      .def_readonly("correct", &Evaluation::correct, "Pictures whose class was chosen.")
      .def_readonly("examples", &Evaluation::examples, "Pictures.")
      .def_readonly("loss", &Evaluation::loss, "Mean cross entropy.")
      .def_property_readonly("accuracy", &Evaluation::accuracy, "correct / examples.")
      .def_property_readonly(
          "balanced_accuracy", [](const Evaluation& self) { return self.balanced_accuracy.value_or(0); },
          "Mean over the classes that have pictures of their own accuracies.");
  py::class_<Verification>(module, "Verification", "The simulation and the integers side by side.")
      .def_property_readonly(
          "simulated", [](const Verification& self) { return self.simulated.accuracy(); }, "Accuracy.")
      .def_property_readonly(
          "integer", [](const Verification& self) { return self.integer.accuracy(); }, "Accuracy.")
      .def_property_readonly(
          "agreement", [](const Verification& self) { return self.simulated.agreement(); },
          "The share of pictures for which both choose the same class.")
      .def_readonly("reference_equal", &Verification::reference_equal,
                    "Whether the fast engine gave the integers of the plain loops, on the pictures compared.");
}

}  // namespace

void bind_training(py::module_& module) {
  bind_results(module);
  module.def("evaluate", &evaluate, py::arg("session"), py::arg("classifier"), py::arg("dataset"),
             "Accuracy and loss of a session on a classifier's graph.");
  module.def("evaluate_integers", &evaluate_integers, py::arg("model"), py::arg("dataset"),
             "The same of an integer model.");
  module.def("verify", &verify, py::arg("session"), py::arg("classifier"), py::arg("model"), py::arg("dataset"),
             "Runs the evaluation graph and the integer model side by side over a data set.");
}

}  // namespace miniqat::python
