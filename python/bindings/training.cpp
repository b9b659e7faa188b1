// Whole commands: train, evaluate, verify.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <exception>

#include "core/parallel.h"
#include "core/text/json.h"
#include "python/bindings/handles.h"
#include "python/bindings/values.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/integer_evaluator.h"
#include "training/run/run_source.h"
#include "training/run/validation_part.h"
#include "training/settings/settings.h"
#include "training/train/run_settings.h"
#include "training/train/trainer.h"
#include "training/verify/verifier.h"

namespace miniqat::python {
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

Evaluation evaluate(SessionHandle& session, const ClassifierHandle& classifier, const DatasetHandle& dataset) {
  return session.locked([&](Session& of) {
    training::require_fit(*classifier.whole, dataset.dataset, "the classifier");
    return training::evaluate(of, *classifier.whole, dataset.dataset, interruptible());
  });
}

Evaluation evaluate_integers(const integer::Model& model, const DatasetHandle& dataset) {
  const py::gil_scoped_release open;
  return training::evaluate_integers(model, dataset.dataset, interruptible());
}

Verification verify(SessionHandle& session, const ClassifierHandle& classifier, const integer::Model& model,
                    const DatasetHandle& dataset) {
  return session.locked([&](Session& of) {
    return training::verify(of, *classifier.whole, model, dataset.dataset,
                            [](std::int64_t, std::int64_t) { check_signals(); });
  });
}

/// Gives Python's functions the news of a training. What they raise, a KeyboardInterrupt too, ends it as a wish to stop
/// would, and comes out of finish().
class Observer final : public training::RunObserver {
 public:
  Observer(py::object report, py::object on_step) : report_(std::move(report)), on_step_(std::move(on_step)) {}

  void say(const std::string& text) override { tell(text); }
  void warn(const std::string& text) override { tell(text); }
  void on_step(const training::StepReport& step) override {
    call([&] {
      if (!on_step_.is_none()) on_step_(step.step, step.total_steps, step.loss);
    });
  }
  bool wants_to_stop() override {
    call([] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    });
    return raised_ != nullptr;
  }
  void finish() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }

 private:
  void tell(const std::string& text) {
    call([&] {
      if (!report_.is_none()) report_(text);
    });
  }
  template <class Body>
  void call(const Body& body) {
    if (raised_ != nullptr) return;
    const py::gil_scoped_acquire locked;
    try {
      body();
    } catch (const py::error_already_set&) {
      raised_ = std::current_exception();
    }
  }

  py::object report_;
  py::object on_step_;
  std::exception_ptr raised_;
};

training::TrainSettings settings_from(const nlohmann::ordered_json& json, training::TrainSettings settings) {
  const std::string former = settings.optimizer;
  training::settings_from_json(json, settings, "settings");
  training::require_rate_for(former, settings, json.contains("learning_rate"));
  training::load_layer_bits(settings.rewrite);
  return settings;
}

void train_new(const std::filesystem::path& out, bool overwrite, const nlohmann::ordered_json& json,
               Observer& observer) {
  training::TrainSettings settings = settings_from(json, {});
  training::check(settings);
  training::TrainExtras extras;
  if (!json.contains("batch_size")) extras.notes.push_back(training::adopt_batch_size(settings));
  for (const auto& item : json.items()) extras.given.push_back(item.key());
  training::resolve(settings);
  extras.notes.push_back(training::inherit_validation_part(
      settings, {.size = json.contains("validation"), .method = json.contains("validation_method")}));
  set_thread_count(static_cast<int>(settings.threads));
  const auto run = training::RunDirectory::fresh(
      out, "give another folder, resume=True to go on with that run, or overwrite=True to delete it",
      overwrite ? training::RunDirectory::Existing::kOverwrite : training::RunDirectory::Existing::kRefuse);
  training::train(settings, run, extras, observer);
}

void train_on(const std::filesystem::path& out, const nlohmann::ordered_json& json, Observer& observer) {
  const auto run = training::RunDirectory::resume(out);
  training::TrainExtras extras{.resume = true, .begun = training::begun_settings(run)};
  training::TrainSettings wanted = settings_from(json, extras.begun);
  wanted.dataset = training::resolved_dataset(wanted.dataset);
  wanted.data_dir = training::resolved_data_dir(wanted.dataset, wanted.data_dir);
  training::require_same_run(wanted, extras.begun);
  training::check(wanted);
  set_thread_count(static_cast<int>(wanted.threads));
  training::train(wanted, run, extras, observer);
}

void train(const std::filesystem::path& out, bool overwrite, bool resume, py::object report, py::object on_step,
           const py::kwargs& settings) {
  if (overwrite && resume) throw py::value_error("overwrite deletes the run that resume would go on with");
  const nlohmann::ordered_json json = to_json(settings);
  Observer observer(std::move(report), std::move(on_step));
  {
    const py::gil_scoped_release open;
    resume ? train_on(out, json, observer) : train_new(out, overwrite, json, observer);
  }
  observer.finish();
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
  module.def("train", &train, py::arg("out"), py::arg("overwrite") = false, py::arg("resume") = false,
             py::arg("report") = py::none(), py::arg("on_step") = py::none(),
             "`miniqat train`: keywords are its flags, with `_` for `-`; the run is kept in the folder `out`.\n"
             "report(text) hears what the program would print, on_step(step, steps, loss) each step. After a\n"
             "KeyboardInterrupt, or what these functions raise, the checkpoint is written: resume=True goes on.");
}

}  // namespace miniqat::python
