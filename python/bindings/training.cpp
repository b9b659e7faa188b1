// Classifier: the models that have a name, and the loss. Networks and integers on data: evaluate, verify.

#include <pybind11/stl.h>

#include "models/models.h"
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

using datasets::Dataset;
using training::Evaluation;
using training::Verification;

/// Null for "": what the data are for.
const training::Task* task_named(const std::string& name) {
  return name.empty() ? nullptr : &training::find_task(name);
}

ClassifierHandle make_classifier(const std::string& model, const Dataset& dataset, std::int64_t batch_size,
                                 double width, const std::string& output, const std::string& task) {
  const bool is_file = training::is_graph_file(model);
  if (is_file && width != 1) throw py::value_error(concat("width has no effect with ", model, ", a file"));
  if (!is_file && !output.empty()) throw py::value_error(concat("output has no effect with ", model, ", no file"));
  const Unlocked open;
  return ClassifierHandle(training::make_classifier(
      {.model = model, .width = width, .batch_size = batch_size, .output = output, .task = task_named(task)}, dataset));
}

py::tuple add_loss(const ClassifierHandle& self, double label_smoothing, const std::vector<double>& class_weights,
                   double huber) {
  const training::TrainingEnds ends = self.graph->locked([&](Graph&) {
    return training::add_loss(self.current(), {label_smoothing, class_weights, huber});
  });
  const py::object labels =
      ends.labels.node == nullptr ? py::none() : py::cast(OutputHandle{self.graph, ends.labels.name()});
  return py::make_tuple(labels, OutputHandle{self.graph, ends.loss.name()});
}

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

Evaluation evaluate(SessionHandle& session, const ClassifierHandle& classifier, const Dataset& dataset) {
  require_same_graph(session, classifier);
  return session.locked([&](Session& of) {
    training::Classifier& network = classifier.current();
    training::require_fit(network, dataset, "the classifier");
    return training::evaluate(of, network, dataset, interruptible());
  });
}

/// Numbers, and targets, must be standardised as the model knows that those of its training were.
void require_standard_of(const integer::Model& model, const Dataset& dataset) {
  const auto require_as = [&](const char* what, const auto& wanted, const auto& found) {
    if (!wanted || (found && *found == *wanted)) return;
    fail("the model's ", what, " are standardised as those of its training data were, and those of ", dataset.name,
         found ? " have other means and deviations: take load(..., no_standardise=True) and "
               : " are as they were given: take ",
         "dataset.standardised(like=train) with the data that convert() took");
  };
  require_as("inputs", model.input_standard, dataset.standard);
  require_as("targets", model.output_standard, dataset.target_standard);
}

Evaluation evaluate_integers(const ModelHandle& model, const Dataset& dataset) {
  const std::shared_ptr<const integer::Model> kept = model.model;
  const Unlocked open;
  const training::Task& task = kept->task.empty() ? training::task_for(dataset) : training::find_task(kept->task);
  if (&task == &training::classification())
    training::require_pictures_fit(*kept, dataset, "the model");
  else
    training::require_fit(*kept, task, dataset, "the model");
  require_standard_of(*kept, dataset);
  return training::evaluate_integers(*kept, task, dataset, interruptible());
}

Verification verify(SessionHandle& session, const ClassifierHandle& classifier, const ModelHandle& model,
                    const Dataset& dataset) {
  require_same_graph(session, classifier);
  const std::shared_ptr<const integer::Model> kept = model.model;
  return session.locked([&](Session& of) {
    training::require_pictures_fit(classifier.whole->images, dataset.example_shape(), dataset.name, "the classifier");
    training::require_pictures_fit(*kept, dataset, "the model");
    require_standard_of(*kept, dataset);
    return training::verify(of, classifier.current(), *kept, dataset,
                            [](std::int64_t, std::int64_t) { check_signals(); });
  });
}

void bind_classifier(py::module_& module) {
  py::class_<ClassifierHandle>(module, "Classifier", "A network with its ends, and what it learns.")
      .def_readonly("graph", &ClassifierHandle::graph, "The graph.")
      .def_property_readonly(
          "images",
          [](const ClassifierHandle& self) {
            return OutputHandle{self.graph, self.graph->locked([&](Graph&) { return self.whole->images.name(); })};
          },
          "The placeholder of the pictures, [n, h, w, c] float32, or of other examples, [n, ...].")
      .def_property_readonly(
          "logits",
          [](const ClassifierHandle& self) {
            return OutputHandle{self.graph, self.graph->locked([&](Graph&) { return self.current().logits.name(); })};
          },
          "[n, classes], the graph's first output; of other tasks numbers, [n, ...].")
      .def_property_readonly(
          "task", [](const ClassifierHandle& self) { return self.whole->task->name; },
          "\"classify\", \"regress\", \"reconstruct\" or \"multilabel\" (docs/tasks.md).")
      .def("add_loss", &add_loss, py::arg("label_smoothing") = 0.0, py::arg("class_weights") = std::vector<double>(),
           py::arg("huber") = 0.0,
           "Adds the loss of the task: (labels, loss). Of classes a placeholder for labels, [n] int32, and the mean\n"
           "cross entropy, where a picture counts as much as the weight of its class says. Of other tasks a\n"
           "placeholder for targets, float32, or None where the input itself is the target; errors of numbers above\n"
           "huber, if that is not 0, count in proportion instead of squared.")
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
  module.def("make_classifier", &make_classifier, py::arg("model"), py::arg("dataset"), py::arg("batch_size") = 128,
             py::arg("width") = 1.0, py::arg("output") = "", py::arg("task") = "",
             "A model by name, or from a .json or .onnx file, for the pictures and classes of a data set, or for its\n"
             "numbers. output: of a file with several outputs the one that has the logits; default: the first. task:\n"
             "Classifier.task; default: what the data are for.");
  module.def(
      "find_classifier",
      [](const std::shared_ptr<GraphHandle>& graph, const std::string& task) {
        return ClassifierHandle(training::find_classifier(graph->locked([](Graph& of) { return of.clone(); }),
                                                          "the graph", training::find_task(task)));
      },
      py::arg("graph"), py::arg("task") = "classify",
      "A copy of a graph as a classifier: its only float placeholder of rank 4, or else the only one that is no\n"
      "target, and its first output.");
  module.def("model_names", &models::model_names, "The models that have a name.");
}

void bind_results(py::module_& module) {
  py::class_<Evaluation>(module, "Evaluation", "The result of a network on a data set.")
      .def_property_readonly("correct", &Evaluation::correct, "Pictures whose class was chosen.")
      .def_readonly("examples", &Evaluation::examples, "Pictures, or other examples.")
      .def_readonly("loss", &Evaluation::loss, "The mean of the task's loss; of classes: cross entropy.")
      .def_property_readonly(
          "measures",
          [](const Evaluation& self) {
            py::dict measures;
            for (const training::Measure& one : self.measures) measures[one.kind->key] = one.value;
            return measures;
          },
          "What the task measures, by name; the first decides which of two networks is better.")
      .def_property_readonly("accuracy", &Evaluation::accuracy,
                             "correct / examples; 0 where the task is none of classes.")
      .def_property_readonly(
          "balanced_accuracy", [](const Evaluation& self) { return self.find("balanced_accuracy").value_or(0); },
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
  bind_classifier(module);
  bind_results(module);
  module.def("evaluate", &evaluate, py::arg("session"), py::arg("classifier"), py::arg("dataset"),
             "Loss and measures of a session on a classifier's graph: of classes the accuracy.");
  module.def("evaluate_integers", &evaluate_integers, py::arg("model"), py::arg("dataset"),
             "The same of an integer model.");
  module.def("verify", &verify, py::arg("session"), py::arg("classifier"), py::arg("model"), py::arg("dataset"),
             "Runs the evaluation graph and the integer model side by side over a data set.");
}

}  // namespace miniqat::python
