// Files of earlier versions: all of them read, and evaluate to what was recorded. See README.md here.
//
// With MINIQAT_UPDATE_GOLDEN=1 (scripts/golden --update) the tests record instead.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "datasets/idx.h"
#include "integer/engine.h"
#include "integer/format/model_file.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/cli/program.h"
#include "tests/errors.h"
#include "tests/source_dir.h"
#include "training/evaluate/evaluator.h"
#include "training/model_source.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"

namespace miniqat::golden_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const fs::path kCorpus = source_dir() / "tests/golden";

/// What was recorded of all files and runs: for each an object.
class Record {
 public:
  static Record& get() {
    static Record record;
    return record;
  }
  Json& of(const std::string& name) { return json_[name]; }
  void write() const { std::ofstream(kFile) << text(); }

 private:
  Record() : json_(Json::parse(testing::bytes_of(kFile))) {}

  /// A line a key.
  std::string text() const {
    std::string text = "{";
    for (const auto& [name, results] : json_.items()) {
      text += concat(text == "{" ? "" : "},", "\n", Json(name).dump(), ": {");
      const char* separator = "\n  ";
      for (const auto& [key, value] : results.items()) {
        text += concat(separator, Json(key).dump(), ": ", value.dump());
        separator = ",\n  ";
      }
    }
    return text + "}\n}\n";
  }

  static inline const fs::path kFile = kCorpus / "expected.json";
  Json json_;
};

/// What was recorded under the name of a file or run.
class Expected {
 public:
  explicit Expected(const std::string& name) : name_(name), json_(Record::get().of(name)) {
    if (updating()) json_.clear();
  }
  ~Expected() {
    if (updating()) Record::get().write();
  }

  static bool updating() { return std::getenv("MINIQAT_UPDATE_GOLDEN") != nullptr; }

  /// Numbers that must come out as they were.
  void exactly(const std::string& key, const Json& values) {
    if (updating())
      json_[key] = values;
    else
      EXPECT_EQ(json_[key], values) << name_ << " " << key;
  }
  /// Float numbers, the first kMost of them: no more than `share` of them differ by more than rounding does, and these
  /// by no more than `step`.
  void nearly(const std::string& key, std::span<const float> values, double step, double share) {
    values = values.first(std::min(kMost, values.size()));
    if (updating()) {
      json_[key] = Json::array();
      for (const float value : values) json_[key].push_back(short_number(value));
      return;
    }
    const auto recorded = json_[key].get<std::vector<float>>();
    ASSERT_EQ(recorded.size(), values.size()) << name_ << " " << key;
    float largest = 0;
    for (const float value : recorded) largest = std::max(largest, std::abs(value));
    int jumps = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(values[i] - recorded[i]);
      if (difference <= 1e-5 * largest) continue;
      EXPECT_LE(difference, step * 1.001) << name_ << " " << key << " element " << i;
      ++jumps;
    }
    EXPECT_LE(jumps, share * static_cast<double>(values.size())) << name_ << " " << key;
  }

 private:
  static constexpr std::size_t kMost = 40;

  /// With the nine digits that tell floats apart.
  static double short_number(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::strtod(text, nullptr);
  }

  std::string name_;
  Json& json_;
};

std::vector<std::string> entries(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCorpus / folder)) names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

/// The corpus as a directory to work in: runs name their data and models relative to it.
class Golden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    layers::register_ops();
    quantize::register_ops();
  }
  Golden() {
    fs::copy(kCorpus, place_.path() / "golden", fs::copy_options::recursive);
    before_ = fs::current_path();
    fs::current_path(place_.path() / "golden");
  }
  ~Golden() override { fs::current_path(before_); }

  const testing::TempDir place_;
  const datasets::Splits data_ = datasets::load_idx("mnist", kCorpus / "digits");

 private:
  fs::path before_;
};

/// The grid of the last quantizer before the logits, whose steps rounding may make one of.
float step_of(const integer::Model* model) { return model == nullptr ? 0 : model->tensor(model->output).grid.scale; }

std::vector<float> logits_of(const training::RunSource& run, const datasets::Dataset& data) {
  training::Classifier net = training::find_classifier(read_graph(run.directory.eval_graph()), "eval_graph.json");
  Session session(net.graph);
  session.restore(read_safetensors(run.checkpoint), Session::Restore::kVariables, run.checkpoint);
  std::vector<float> logits;
  const std::int64_t batch = net.images.shape()[0], pixels = data.example_shape().elements();
  for (std::int64_t first = 0; first + batch <= data.size(); first += batch) {
    Tensor images(net.images.shape());
    for (std::int64_t i = 0; i < images.elements(); ++i)
      images.data<float>()[i] = data.scale * data.images.data<std::uint8_t>()[first * pixels + i];
    const Tensor batch_logits = session.run({.fetches = {net.logits}}, {{net.images, images}}).fetched[0];
    logits.insert(logits.end(), batch_logits.data<float>(), batch_logits.data<float>() + batch_logits.elements());
  }
  return logits;
}

Json integers_of(const integer::Model& model, const datasets::Dataset& data) {
  integer::Engine engine(model);
  const Tensor output = engine.run(training::input_batch(data, model.tensor(model.input).grid, 0, data.size()));
  return std::vector<int>(output.data<std::uint8_t>(), output.data<std::uint8_t>() + output.elements());
}

TEST_F(Golden, RunsGiveTheSameLogitsAndIntegers) {
  for (const std::string& name : entries("runs")) {
    SCOPED_TRACE(name);
    const training::RunSource run = training::open_run("runs/" + name, "");
    EXPECT_EQ(run.note.empty(), !name.starts_with("interrupted"));
    read_graph(run.directory.train_graph());
    Expected expected(name);
    std::optional<integer::Model> model;
    if (!run.settings.float_only) {
      model = training::convert_run(run.directory, run.checkpoint, training::recorded_input(run));
      expected.exactly("integers", integers_of(*model, data_.test));
    }
    expected.nearly("logits", logits_of(run, data_.test), step_of(model ? &*model : nullptr), 0.02);
    const testing::Outcome outcome = testing::miniqat({"eval", "--run", "runs/" + name, "--json", "--threads", "1"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json result = Json::parse(outcome.out);
    expected.exactly("quantization", result["quantization"]);
    expected.exactly("correct", result["correct"]);
  }
}

TEST_F(Golden, InterruptedRunsGoOn) {
  for (const std::string name : {"interrupted", "interrupted-adam", "interrupted-learned"}) {
    const testing::Outcome outcome = testing::miniqat({"train", "--resume", "--out", "runs/" + name});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json summary = Json::parse(testing::bytes_of("runs/" + name + "/summary.json"));
    EXPECT_EQ(summary["complete"], true);
    EXPECT_EQ(summary["steps"], 40);
    Expected expected(name + "-resumed");
    expected.exactly("correct", std::lround(summary["test_accuracy"].get<double>() * 20));
    const std::vector<float> loss = {summary["test_loss"].get<float>()};
    expected.nearly("test_loss", loss, 0.01 * loss[0], 1);
  }
}

TEST_F(Golden, ModelFilesGiveTheSameIntegers) {
  for (const std::string& name : entries("models")) {
    SCOPED_TRACE(name);
    const fs::path file = fs::path("models") / (name + ".miniqat");
    Expected expected("model-" + name);
    if (name == "version-1") {
      expected.exactly("refused", testing::error_of([&] { integer::read_model(file); }));
      continue;
    }
    const integer::Model model = integer::read_model(file);
    expected.exactly("integers", integers_of(model, data_.test));
    EXPECT_EQ(integer::to_bytes(model), testing::bytes_of(file));
  }
}

TEST_F(Golden, PredictedNumbersAreTheSame) {
  for (const std::string& name : entries("tables")) {
    Expected expected("table-" + name);
    for (const bool integer : {false, true}) {
      if (integer && name.ends_with("-float")) continue;
      const testing::Outcome outcome =
          testing::miniqat("eval --run tables/" + name + " --json --threads 1" + (integer ? " --integer" : ""));
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      const Json result = Json::parse(outcome.out);
      const std::vector<float> figures = {result["r2"].get<float>(), result["mae"].get<float>(),
                                          result["mse"].get<float>()};
      expected.nearly(integer ? "integer" : "simulated", figures, integer ? 0 : 0.01, integer ? 0 : 1);
    }
  }
}

class GoldenOps : public Golden, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Files, GoldenOps, ::testing::Values("every-op", "every-later-op"));

TEST_P(GoldenOps, ComputeTheSame) {
  Graph graph = read_graph(GetParam() + ".json");
  for (const bool training : {false, true}) {
    Session session(graph);
    Feeds feeds;
    Tensor x(Shape{2, 6, 6, 3});
    for (std::int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i * 37 % 101) / 25 - 2;
    feeds.emplace_back(graph.output_at("x"), x);
    feeds.emplace_back(graph.output_at("labels"), Tensor::from<std::int32_t>({2}, std::vector<std::int32_t>{2, 0}));
    const RunResult result = session.run({.fetches = graph.outputs(), .training = training}, feeds);
    Expected expected(GetParam() + (training ? "-training" : ""));
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const Tensor& value = result.fetched[i];
      expected.nearly(graph.outputs()[i].name(), value.values<float>(), 0, 0);
    }
  }
}

}  // namespace
}  // namespace miniqat::golden_test
