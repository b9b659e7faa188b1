// The commands quantize and sensitivity.

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <set>

#include "core/text/json.h"
#include "core/text/suggest.h"
#include "python/bindings/observer.h"
#include "python/bindings/values.h"
#include "training/quantize/quantization_run.h"
#include "training/quantize/sensitivity_files.h"
#include "training/run/run_source.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"

namespace miniqat::python {
namespace {

using training::CalibrateSettings;
using training::FloatRun;
using training::QuantizationPlan;
using training::TrainSettings;
using training::UsageError;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

template <class Settings>
std::set<std::string> names_of_settings() {
  std::set<std::string> names;
  Settings::visit([&](const char* name, auto, const char*) { names.insert(name); });
  return names;
}

/// Takes the members of those names out of `json`.
Json taken(Json& json, const std::set<std::string>& names) {
  Json part = Json::object();
  for (const auto& item : json.items())
    if (names.contains(item.key())) part[item.key()] = item.value();
  for (const auto& item : part.items()) json.erase(item.key());
  return part;
}

/// A float run has its network and its data; a model needs both. `may_have_data`: a run may be given other ones.
void require_run_or_model(const std::optional<fs::path>& run, const Json& json, bool may_have_data) {
  const bool has_model = json.contains("model");
  if (run && has_model) throw UsageError("give `run`, a float run, or `model`, an ONNX model, not both");
  if (!run && !has_model)
    throw UsageError("give `run`, the folder of a float run, or `model`, an ONNX model, with `dataset`");
  if (!run) return;
  for (const std::string& name : training::settings_of_float_run()) {
    const bool is_of_data = name == "dataset" || name == "skip_broken";
    if (name != "quant_delay" && name != "validation_method" && json.contains(name) && !(may_have_data && is_of_data))
      throw UsageError(concat("`", name, "` goes with `model`: a float run has its own"));
  }
}

/// The settings of the network in an ONNX model; `notes` gets a line for people, or an empty one.
TrainSettings model_settings(const Json& json, std::string& note) {
  TrainSettings settings;
  training::settings_from_json(json, settings, "settings");
  settings.rewrite = {};
  note = training::settle_model(settings, json.contains("dataset"), json.contains("batch_size"));
  return settings;
}

QuantizationPlan new_plan(const std::optional<fs::path>& run, Json json, Observer& observer) {
  require_run_or_model(run, json, false);
  QuantizationPlan plan{.run = run ? run->string() : ""};
  std::set<std::string> of_calibration = names_of_settings<CalibrateSettings>();
  of_calibration.erase("seed");
  training::settings_from_json(taken(json, of_calibration), plan.calibrate, "settings");
  training::check(plan.calibrate);
  std::string note;
  const FloatRun source =
      run ? training::read_float_run(plan.run) : training::read_float_model(model_settings(json, note));
  if (!note.empty()) observer.warn(note);
  plan.training = training::quantization_defaults(source);
  if (json.contains("freeze_bn_delay")) plan.training.reestimate = 0;
  training::settings_from_json(json, plan.training, "settings");
  std::set<std::string> given;
  for (const auto& item : json.items()) given.insert(item.key());
  plan.training.given = given;
  training::settle_given(plan.training);
  training::settle(plan, source, given);
  return plan;
}

QuantizationPlan former_plan(const training::RunDirectory& out, const std::optional<fs::path>& run, const Json& json) {
  if (run || !json.empty()) throw UsageError("resume takes the settings in quantize.json; leave the others out");
  return training::read_plan(out);
}

/// What quantize.json says of the results.
py::object results_of(const training::RunDirectory& out) {
  Json json = training::read_json(out.quantization());
  for (const char* key : {"calibration", "training", "complete"}) json.erase(key);
  return from_json(json);
}

py::object quantize(const fs::path& out, const std::optional<fs::path>& run, bool overwrite, bool resume,
                    py::object report, py::object on_step, const py::kwargs& settings) {
  if (overwrite && resume) throw py::value_error("overwrite deletes the run that resume would go on with");
  if (overwrite && run && training::is_or_lies_in(*run, out))
    throw py::value_error("overwrite would delete the run that `run` names: give another out");
  const Json json = to_json(settings);
  Observer observer(std::move(report), std::move(on_step));
  std::optional<training::RunDirectory> directory;
  observer.follow([&] {
    if (resume) {
      directory = training::resumed_quantization(out);
      const QuantizationPlan plan = former_plan(*directory, run, json);
      if (!training::is_quantized(*directory)) training::quantize_run(plan, *directory, true, observer);
      return;
    }
    const QuantizationPlan plan = new_plan(run, json, observer);
    directory = training::new_quantization(
        out, overwrite ? training::RunDirectory::Existing::kOverwrite : training::RunDirectory::Existing::kRefuse);
    training::quantize_run(plan, *directory, false, observer);
  });
  return results_of(*directory);
}

/// How quantizers are: what `miniqat sensitivity` has flags for.
training::RewriteSettings measured_rewrite(Json& json) {
  training::RewriteSettings rewrite = training::rewrite_of_trainings();
  training::settings_from_json(taken(json, {"per_channel", "symmetric", "symmetric_weights", "ranges",
                                            "asymmetric_weights", "scope", "full_range_weights", "scales"}),
                               rewrite, "settings");
  return rewrite;
}

training::SensitivityRequest request_from(const std::optional<fs::path>& run, Json json, Observer& observer) {
  require_run_or_model(run, json, true);
  training::SensitivityRequest request{.run = run ? run->string() : ""};
  request.rewrite = measured_rewrite(json);
  training::settings_from_json(taken(json, names_of_settings<training::SensitivitySettings>()), request.settings,
                               "settings");
  if (!run) {
    std::string note;
    request.model = model_settings(json, note);
    if (!note.empty()) observer.warn(note);
    request.dataset = request.model->dataset;
    request.data_dir = request.model->data_dir;
    request.threads = static_cast<int>(request.model->threads);
    return request;
  }
  TrainSettings data;
  data.dataset = "";
  training::settings_from_json(taken(json, {"dataset", "data_dir", "skip_broken", "threads"}), data, "settings");
  request.dataset = data.dataset;
  request.data_dir = data.data_dir;
  request.skip_broken = data.skip_broken;
  request.threads = static_cast<int>(data.threads);
  const std::string unknown = json.empty() ? "" : json.begin().key();
  if (!unknown.empty()) throw UsageError(concat("`", unknown, "` is not a setting of sensitivity"));
  return request;
}

py::object sensitivity(const fs::path& out, const std::optional<fs::path>& run, const std::vector<std::int64_t>& bits,
                       std::int64_t logits_bits, std::optional<double> average_bits, std::optional<std::int64_t> bytes,
                       std::optional<std::int64_t> activation_bits, bool overwrite, py::object report,
                       const py::kwargs& settings) {
  const Json json = to_json(settings);
  Observer observer(std::move(report), py::none());
  Json result;
  observer.follow([&] {
    training::SensitivityRequest request = request_from(run, json, observer);
    request.bits = bits;
    request.logits_bits = logits_bits;
    request.budget = {.average_bits = average_bits, .bytes = bytes, .activation_bits = activation_bits};
    request.check();
    request.rewrite.weight_bits = std::ranges::min(bits);
    const training::SensitivityFiles files(out, overwrite);
    const training::Sensitivity measured = training::measure_sensitivity(request, observer);
    files.write(measured, request);
    result = training::sensitivity_to_json(measured, request);
  });
  return from_json(result);
}

}  // namespace

void bind_quantize_run(py::module_& module) {
  module.def(
      "quantize", &quantize, py::arg("out"), py::arg("run") = py::none(), py::arg("overwrite") = false,
      py::arg("resume") = false, py::arg("report") = py::none(), py::arg("on_step") = py::none(),
      "`miniqat quantize`: makes integers of the float run in the folder `run`, or of model=\"FILE.onnx\" with\n"
      "dataset. Keywords are the command's flags, with `_` for `-`; the run is kept in the folder `out`. report\n"
      "and on_step are those of train(). Returns what quantize.json has: \"chosen\", \"rows\" and so on.");
  module.def(
      "sensitivity", &sensitivity, py::arg("out"), py::arg("run") = py::none(),
      py::arg("bits") = std::vector<std::int64_t>{2, 3, 4, 8}, py::arg("logits_bits") = 8,
      py::arg("average_bits") = py::none(), py::arg("bytes") = py::none(), py::arg("activation_bits") = py::none(),
      py::arg("overwrite") = false, py::arg("report") = py::none(),
      "`miniqat sensitivity`: what each layer of a float run, or of model=\"FILE.onnx\" with dataset, loses at each\n"
      "width, and with a budget the bits to take. Other keywords are the command's flags, with `_` for `-`.\n"
      "Returns the content of sensitivity.json; it and bits.json, for bits_config, are in the folder `out`.");
}

}  // namespace miniqat::python
