// The rewrite, calibration and conversion.

#include "quantize/quantize.h"

#include <pybind11/stl.h>

#include <cmath>

#include "core/text/json.h"
#include "core/text/json_text.h"
#include "python/bindings/handles.h"
#include "python/bindings/values.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/convert/convert.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite_report.h"
#include "training/run/integer_source.h"
#include "training/run/output_names.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/settings.h"
#include "training/task/task.h"

namespace miniqat::python {

template <>
inline constexpr bool kIsBound<quantize::RewriteReport> = true;

namespace {

using quantize::RewriteReport;

/// The options of the rewrite under the names of the program's flags. `bits_config` is a file, or a dictionary of what
/// would be in it.
training::RewriteSettings rewrite_settings(const py::kwargs& keywords) {
  nlohmann::ordered_json json = to_json(keywords);
  training::RewriteSettings settings;
  const auto bits = json.find("bits_config");
  if (bits != json.end() && bits->is_object()) {
    settings.layer_bits = quantize::layer_bits_from_json(dump_on_one_line(*bits), "bits_config");
    json.erase("bits_config");
  }
  training::settings_from_json(json, settings, "options");
  training::load_layer_bits(settings);
  return settings;
}

/// Throws UsageError for a setting that an earlier rewrite of the graph had otherwise; the graph is then unchanged.
template <RewriteReport (*kRewrite)(Graph&, const quantize::RewriteOptions&)>
RewriteReport rewrite(GraphHandle& graph, const py::kwargs& keywords) {
  const training::RewriteSettings settings = rewrite_settings(keywords);
  std::vector<std::string> given;
  for (const auto& [name, value] : keywords) given.push_back(py::str(name));
  return graph.locked([&](Graph& of) {
    Graph copy = of.clone();
    training::require_as_asked(kRewrite(copy, settings), settings, {}, given, "the graph");
    return kRewrite(of, settings);
  });
}

py::list edges(const RewriteReport& report) {
  py::list edges;
  for (const quantize::EdgeReport& edge : report.edges)
    edges.append(py::make_tuple(edge.tensor, edge.consumer, std::string(quantize::name_of(edge.status)), edge.reason));
  return edges;
}

void bind_rewrite(py::module_& module) {
  py::class_<RewriteReport>(module, "RewriteReport", "What a rewrite did.")
      .def("text", &RewriteReport::text, "For people: layers, edges and notes in columns.")
      .def_readonly("inserted", &RewriteReport::inserted, "The names of the quantizers that this call inserted.")
      .def_readonly("remarks", &RewriteReport::remarks, "Parts that stay float, and requests without effect.")
      .def_readonly("warnings", &RewriteReport::warnings, "Options that are legal and hardly meant.")
      .def_property_readonly("edges", &edges, "(tensor, consumer, status, reason) of each edge.");
  module.def("create_training_graph", &rewrite<quantize::create_training_graph>, py::arg("graph"),
             "Rewrites the graph in place for training with simulated quantization: folds batch norms and inserts\n"
             "quantizers (docs/rewrite.md). Keywords are the flags of `miniqat rewrite`, with `_` for `-`;\n"
             "`bits_config` may be a dictionary. Rewriting twice changes nothing, and asking for other settings then\n"
             "is an error. A session on the graph follows it: its next call runs with the quantizers.");
  module.def("create_eval_graph", &rewrite<quantize::create_eval_graph>, py::arg("graph"),
             "The same for evaluation: stored ranges, no observers.");
  module.def(
      "turn_to_evaluation", [](GraphHandle& graph) { graph.locked(quantize::turn_to_evaluation); }, py::arg("graph"),
      "Turns the quantizers and batch norms of a training graph to evaluation.");
  module.def(
      "quantization_label",
      [](GraphHandle& graph) { return graph.locked([](Graph& of) { return quantize::quantization_of(of).label(); }); },
      py::arg("graph"), "\"float\", \"W4A8\", ...: how a graph is quantized.");
}

py::list pairs(const std::vector<quantize::Range<float>>& ranges) {
  py::list list;
  for (const quantize::Range<float>& range : ranges) list.append(py::make_tuple(range.min, range.max));
  return list;
}

/// (min, max) of each channel, by the quantizer's name.
py::dict ranges(SessionHandle& session) {
  py::dict found;
  const auto all = session.locked([](Session& of) { return quantize::quantizer_ranges(of.graph(), of.variables()); });
  for (const quantize::QuantizerRange& range : all) found[py::str(range.quantizer)] = pairs(range.ranges);
  return found;
}

/// Null at the end.
py::object next_of(const py::object& iterator) {
  PyObject* const next = in_python([&] { return PyIter_Next(iterator.ptr()); });
  if (next == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(next);
}

py::dict calibrate(SessionHandle& session, const py::iterable& batches, const std::string& method, double percentile) {
  const auto names = names_of(quantize::CalibrationMethod());
  const auto found = std::ranges::find(names, method);
  if (found == names.end()) fail_unknown("method", method, names);
  const quantize::CalibrationOptions options{.method = static_cast<quantize::CalibrationMethod>(found - names.begin()),
                                             .percentile = percentile};
  const auto calibrator =
      session.locked([&](Session& of) { return std::make_unique<quantize::Calibrator>(of, options); });
  const py::object iterator = py::iter(batches);
  while (const py::object batch = next_of(iterator)) {
    if (!py::isinstance<py::dict>(batch)) throw py::type_error("batches must be dictionaries of arrays: the feeds");
    const NamedFeeds feeds(py::reinterpret_borrow<py::dict>(batch), session.graph);
    session.locked([&](Session& of) { calibrator->observe(feeds.feeds_of(of.graph())); });
    if (in_python(PyErr_CheckSignals) != 0) throw py::error_already_set();
  }
  py::dict set;
  for (const quantize::CalibratedRange& range : session.locked([&](Session&) { return calibrator->finish(); }))
    set[py::str(range.quantizer)] = pairs(range.set);
  return set;
}

const training::Task& wanted_task(const std::string& name, const datasets::Dataset& data) {
  return name.empty() ? training::task_for(data) : training::find_task(name);
}

/// What an integer model knows of the numbers that it is for, as convert_run() does.
void take_task(const datasets::Dataset& data, const training::Task& task, integer::Model& model) {
  if (&task != &training::classification()) model.task = task.name;
  std::vector<std::string> names = training::output_names(data, task);
  if (std::ssize(names) == model.tensor(model.output).shape.elements()) model.class_names = std::move(names);
  if (data.standard) model.input_standard = *data.standard;
  if (&task == &training::regression() && data.target_standard) model.output_standard = *data.target_standard;
  model.check();
}

ModelHandle convert(GraphHandle& graph, const py::dict& variables, float input_scale, std::int32_t input_zero_point,
                    const std::string& name, const datasets::Dataset* dataset, const std::string& task) {
  if (!std::isfinite(input_scale) || input_scale <= 0)
    throw py::value_error(concat("input_scale must be a positive number, is ", input_scale));
  if (input_zero_point < 0 || input_zero_point > 255)
    throw py::value_error(concat("input_zero_point is a byte, not ", input_zero_point));
  if (dataset == nullptr && !task.empty()) throw py::value_error("task goes with dataset");
  const NamedTensors values = copy_of(variables);
  const integer::Grid given{.scale = input_scale, .zero_point = input_zero_point, .bits = 8};
  return graph.locked([&](Graph& of) {
    if (dataset == nullptr) return quantize::convert(of, values, {.input = given, .name = name});
    const training::Task& wanted = wanted_task(task, *dataset);
    integer::Model model = quantize::convert(of, values,
                                             {.input = training::grid_of(*dataset),
                                              .name = name,
                                              .leaves_out_softmax = &wanted == &training::classification()});
    take_task(*dataset, wanted, model);
    return model;
  });
}

}  // namespace

void bind_quantize(py::module_& module) {
  bind_rewrite(module);
  module.def("ranges", &ranges, py::arg("session"),
             "The range of each quantizer of the session's graph: a list of (min, max), one for each channel.");
  module.def(
      "calibrate", &calibrate, py::arg("session"), py::arg("batches"), py::arg("method") = "mse",
      py::arg("percentile") = 99.99,
      "Finds the ranges of a graph of create_eval_graph() without training, and sets them. `batches`: the feeds\n"
      "of each batch. method: \"mse\", \"minmax\", \"moving-average\" or \"percentile\". Returns ranges().");
  module.def(
      "convert", &convert, py::arg("graph"), py::arg("variables"), py::arg("input_scale") = 1.0F / 255,
      py::arg("input_zero_point") = 0, py::arg("name") = "model", py::arg("dataset") = py::none(), py::arg("task") = "",
      "The integer-only model of an evaluation graph with these variables. The input's grid is that of the\n"
      "pictures' bytes. dataset: what the network is for; its grid is taken or, of numbers, the task and what they\n"
      "are standardised with, and the names of classes, labels or numbers. task: Classifier.task; default: what the\n"
      "data are for. Raises NotQuantized, naming the tensor, if one lacks a range, and Error, naming the\n"
      "quantizer, if a range never saw a number.");
}

}  // namespace miniqat::python
