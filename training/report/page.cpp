#include "training/report/page.h"

#include <algorithm>
#include <ctime>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "quantize/quantizers.h"
#include "training/report/page_texts.h"
#include "training/report/results.h"
#include "training/run/made_by.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

Json to_json(const Bins& bins) {
  return {{"first", bins.first},
          {"width", bins.width},
          {"counts", bins.counts},
          {"below", bins.below},
          {"above", bins.above}};
}

/// Bits, range and grid, as of a training: what else there is to say is for all quantizers the same.
std::string text_of(quantize::FakeQuantAttributes attributes) {
  attributes.is_training = true;
  attributes.delay = 0;
  return quantize::quantizer_text(attributes);
}

Json to_json(const TensorFigures& figures) {
  const quantize::QuantizerRange& quantizer = figures.quantizer;
  const std::vector<quantize::Affine<float>> grids = quantizer.grids();
  const double values = static_cast<double>(figures.values);
  Json json = {{"quantizer", quantizer.quantizer},
               {"text", text_of(quantizer.attributes)},
               {"bits", quantizer.attributes.bits},
               {"grids", grids.size()},
               {"scale", nullptr},
               {"zero_point", nullptr},
               {"quant_min", figures.quant_min},
               {"quant_max", figures.quant_max},
               {"values", figures.values},
               {"nan", figures.nan},
               {"min", figures.min},
               {"max", figures.max},
               {"clipped", figures.clipped},
               {"clipped_share", values > 0 ? static_cast<double>(figures.clipped) / values : 0},
               {"unused", figures.unused},
               {"snr_db", field_to_json(figures.noise.decibels())},
               {"integers", figures.integers},
               {"integers_per_count", figures.integers_per_count},
               {"floats", to_json(figures.floats)}};
  if (grids.size() == 1) {
    json["scale"] = grids[0].scale;
    json["zero_point"] = static_cast<std::int64_t>(grids[0].zero_point);
  }
  return json;
}

Json to_json(const FloatFigures& figures) {
  return {{"values", figures.values}, {"min", figures.min}, {"max", figures.max}, {"floats", to_json(figures.floats)}};
}

Json to_json(const LayerFigures& layer) {
  const auto noise = [](const std::optional<NoiseSum>& sum) {
    return sum ? field_to_json(sum->decibels()) : Json(nullptr);
  };
  Json json = {{"name", layer.name},
               {"type", layer.type},
               {"weight_shape", layer.weight_shape},
               {"output_shape", layer.output_shape},
               {"output_bits", field_to_json(layer.output_bits)},
               {"cost", nullptr},
               {"weights", layer.weights ? to_json(*layer.weights) : Json(nullptr)},
               {"float_weights", layer.float_weights ? to_json(*layer.float_weights) : Json(nullptr)},
               {"output", layer.output ? to_json(*layer.output) : Json(nullptr)},
               {"samples", Json::array()},
               {"snr_alone_db", noise(layer.alone)},
               {"snr_from_picture_db", noise(layer.from_picture)}};
  if (layer.cost)
    json["cost"] = {{"weight_bits", layer.cost->weight_bits},
                    {"input_bits", layer.cost->input_bits},
                    {"multiply_adds", layer.cost->multiply_adds},
                    {"parameter_bytes", layer.cost->cost.parameter_bytes},
                    {"bit_operations", layer.cost->cost.bit_operations}};
  for (const WeightSample& sample : layer.samples)
    json["samples"].push_back({sample.index, sample.value, sample.integer, sample.rounded});
  return json;
}

Json to_json(const Curves& curves) {
  Json json = {{"last_step", curves.last_step},
               {"lines", curves.lines},
               {"numbers", Json::object()},
               {"ranges", Json::object()},
               {"marks", Json::array()}};
  for (const Curve& curve : curves.numbers) {
    Json& points = json["numbers"][curve.name] = Json::array();
    for (const CurvePoint& point : curve.points) points.push_back({point.step, point.value});
  }
  for (const RangeCurve& curve : curves.ranges) {
    Json& points = json["ranges"][curve.quantizer] = Json::array();
    for (const RangePoint& point : curve.points) points.push_back({point.step, point.min, point.max});
  }
  for (const CurveMark& mark : curves.marks) json["marks"].push_back({{"step", mark.step}, {"text", mark.text}});
  return json;
}

/// The largest numbers beside the diagonal of the confusion matrix, which would be mostly zeros for many classes.
Json confusions_of(const Answers& answers) {
  constexpr std::size_t kMost = 40;
  std::vector<std::pair<std::int64_t, std::pair<std::int64_t, std::int64_t>>> list;
  for (const auto& [place, count] : answers.counts())
    if (place.first != place.second) list.emplace_back(-count, place);
  std::ranges::sort(list);
  list.resize(std::min(list.size(), kMost));
  Json json = Json::array();
  for (const auto& [count, place] : list) json.push_back({place.first, place.second, -count});
  return json;
}

void add_classes(const NetworkAnswers& network, Json& json) {
  constexpr std::int64_t kMostForMatrix = 30;
  const Answers& answers = *network.answers;
  const bool has_matrix = answers.classes() <= kMostForMatrix;
  json["correct"] = network.evaluation.correct();
  json["accuracy"] = network.evaluation.accuracy();
  json["has_uneven_classes"] = network.evaluation.has_uneven_classes();
  json["classes"] = has_matrix ? answers.classes_json() : Json(nullptr);
  json["confusion"] = has_matrix ? answers.confusion_json() : Json(nullptr);
  json["confusions"] = confusions_of(answers);
}

Json to_json(const AnswersOf& one) {
  const Evaluation& evaluation = one.answers.evaluation;
  Json json = {{"name", one.name}, {"examples", evaluation.examples}, {"loss", evaluation.loss}};
  for (const Measure& measure : evaluation.measures) json["measures"][measure.kind->key] = measure.value;
  if (one.answers.answers) add_classes(one.answers, json);
  return json;
}

Json to_json(const Choice& choice) {
  if (choice.predicted < 0) return {{"predicted", nullptr}, {"score", nullptr}};
  return {{"predicted", choice.predicted}, {"score", choice.score}};
}

Json to_json(const Comparison& comparison) {
  Json json = {{"both_right", comparison.both_right},
               {"only_float_right", comparison.only_first_right},
               {"only_integers_right", comparison.only_second_right},
               {"both_wrong", comparison.both_wrong},
               {"same_class", comparison.same_class},
               {"lost", Json::array()}};
  for (const LostPicture& lost : comparison.lost) {
    json["lost"].push_back({{"index", lost.index},
                            {"label", lost.label},
                            {"float", to_json(lost.in_float)},
                            {"integers", to_json(lost.in_integers)}});
    json["lost"].back().update(lost.drawing);
  }
  return json;
}

Json to_json(const RunReport& run) {
  Json json = {{"name", run.name},     {"path", run.path},       {"listed", run.listed}, {"command", run.command},
               {"config", run.config}, {"summary", run.summary}, {"notes", run.notes},   {"results", run.results}};
  json["verify_command"] = concat("miniqat verify ", shell_path(run.path));
  json["skipped_files"] = run.skipped_files;
  json["machine"] = run.machine;
  json["curves"] = to_json(run.curves);
  json["layer_examples"] = run.layer_examples;
  json["layers"] = layers_to_json(run.layers);
  json["graphs"] = {{"before", run.before}, {"after", run.after}};
  json["task"] = run.task->name;
  json["measures"] = Json::array();
  for (const MeasureKind& kind : measures_of(run))
    json["measures"].push_back({{"key", kind.key}, {"name", kind.name}, {"is_share", kind.is_share}});
  json["noun"] = run.noun;
  json["part"] = run.part;
  json["part_examples"] = run.part_examples;
  json["class_names"] = run.class_names;
  json["float_run"] = run.float_run;
  json["answers"] = Json::array();
  for (const AnswersOf& one : run.answers) json["answers"].push_back(to_json(one));
  json["outputs"] = run.outputs;
  json["comparison"] = run.comparison ? to_json(*run.comparison) : Json(nullptr);
  json["verification"] = run.verification;
  json["verification_is_current"] = run.verification_is_current;
  return json;
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

using Json = nlohmann::ordered_json;

std::string title_of(const Report& report) {
  std::string names;
  for (const RunReport& run : report.runs) names += (names.empty() ? "" : ", ") + run.name;
  return "miniqat: " + names;
}

/// Paths and names may hold any bytes.
Json readable(const Json& json) { return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace

Json layers_to_json(const std::vector<LayerFigures>& layers) {
  Json json = Json::array();
  for (const LayerFigures& layer : layers) json.push_back(to_json(layer));
  return json;
}

Json report_to_json(const Report& report) {
  Json json = {{"made", {{"time", now()}, {"threads", thread_count()}}},
               {"runs", Json::array()},
               {"sensitivity", report.sensitivity}};
  json["made"].update(machine_to_json());
  for (const RunReport& run : report.runs) json["runs"].push_back(to_json(run));
  return json;
}

std::string_view report_page_file(std::string_view name) {
  for (const auto& [file, text] : kReportPageTexts)
    if (file == name) return text;
  fail("the page has no file ", name);
}

void require_page_name(const std::filesystem::path& out) { require_ending("--out", out, {".html", ".htm"}); }

std::string report_page(const Report& report) {
  const Json data = readable(report_to_json(report)), title = readable(title_of(report));
  return fill_page(report_page_file("page.html"), [&](std::string_view name) {
    if (name == "title") return html_text(title.get<std::string>());
    if (name == "data") return script_json(data);
    return std::string(report_page_file(name));
  });
}

}  // namespace miniqat::training
