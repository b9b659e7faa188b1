#include "training/report/curves.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/text/error.h"
#include "core/text/json.h"
#include "quantize/quantizers.h"
#include "training/model_source.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

/// What a page draws of metrics.jsonl: of classes their accuracy, of other tasks all that is measured.
const std::vector<std::string>& numbers_drawn() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names = {"loss",          "learning_rate", "validation_accuracy", "validation_loss",
                                      "test_accuracy", "test_loss"};
    for (const Task* task : tasks())
      for (const MeasureKind& kind : task->measures)
        for (const char* part : {"validation_", "test_"})
          // Several tasks have a mean squared error.
          if (const std::string name = std::string(part) + kind.key;
              task != &classification() && std::ranges::find(names, name) == names.end())
            names.push_back(name);
    return names;
  }();
  return kNames;
}

/// `most` of them, evenly, with both ends.
template <class Point>
void thin(std::vector<Point>& points, std::size_t most) {
  if (points.size() <= most) return;
  for (std::size_t i = 0; i < most; ++i) points[i] = points[i * (points.size() - 1) / (most - 1)];
  points.resize(most);
}

template <class Named>
Named& named(std::vector<Named>& list, const std::string& name, std::string Named::*member) {
  const auto found = std::ranges::find(list, name, member);
  if (found != list.end()) return *found;
  Named& fresh = list.emplace_back();
  fresh.*member = name;
  return fresh;
}

void add_ranges(const Json& ranges, std::int64_t step, Curves& curves) {
  for (const auto& item : ranges.items()) {
    const Json& ends = item.value();
    if (!ends.is_array() || ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number()) continue;
    RangeCurve& curve = named(curves.ranges, item.key(), &RangeCurve::quantizer);
    if (!curve.points.empty() && curve.points.back().step == step) curve.points.pop_back();
    curve.points.push_back({step, ends[0].get<double>(), ends[1].get<double>()});
  }
}

/// False for what is no line of a run.
bool add_line(const Json& line, Curves& curves) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return false;
  const auto step = line["step"].get<std::int64_t>();
  curves.last_step = std::max(curves.last_step, step);
  ++curves.lines;
  for (const std::string& name : numbers_drawn())
    if (const auto found = line.find(name); found != line.end() && found->is_number())
      named(curves.numbers, name, &Curve::name).points.push_back({step, found->get<double>()});
  if (const auto ranges = line.find("ranges"); ranges != line.end() && ranges->is_object())
    add_ranges(*ranges, step, curves);
  if (const auto failure = line.find("failure"); failure != line.end() && failure->is_string())
    curves.marks.push_back({step, failure->get<std::string>()});
  if (line.contains("steps_before")) curves.marks.push_back({step, "made longer"});
  if (line.contains("gradients_before")) curves.marks.push_back({step, "gradients no longer rounded"});
  return true;
}

void read_lines(const std::filesystem::path& path, Curves& curves) {
  std::ifstream file(path);
  if (!file) fail("cannot read ", path.string());
  std::int64_t number = 0, first_damaged = 0, damaged = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    // The end of a line that is written at this moment is still missing.
    if (add_line(Json::parse(line, nullptr, false), curves) || file.eof()) continue;
    if (damaged++ == 0) first_damaged = number;
  }
  if (damaged == 1) curves.damage = concat(path.string(), ": line ", first_damaged, " is damaged and left out");
  if (damaged > 1)
    curves.damage =
        concat(path.string(), ": ", damaged, " lines are damaged and left out, the first is line ", first_damaged);
}

void add_delays(const RunDirectory& run, Curves& curves) {
  const quantize::QuantizationDelays delays(read_network(run.train_graph()));
  for (const std::int64_t step : delays.quantization)
    if (step > 0) curves.marks.push_back({step, "quantization begins"});
  for (const std::int64_t step : delays.freeze) curves.marks.push_back({step, "batch norms freeze"});
}

}  // namespace

Curves read_curves(const RunDirectory& run, std::size_t most_points) {
  Curves curves;
  if (run.metrics().exists()) read_lines(run.metrics().path(), curves);
  add_delays(run, curves);
  std::ranges::stable_sort(curves.marks, {}, &CurveMark::step);
  for (Curve& curve : curves.numbers) thin(curve.points, most_points);
  // There are many of these.
  for (RangeCurve& curve : curves.ranges) thin(curve.points, std::max<std::size_t>(most_points / 5, 2));
  return curves;
}

}  // namespace miniqat::training
