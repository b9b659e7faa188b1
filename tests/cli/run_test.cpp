// `miniqat run`: any op, checked from outside through graph JSON and .safetensors files.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/files/safetensors.h"
#include "tests/cli/program.h"

namespace miniqat::testing::run_test {
namespace {

namespace fs = std::filesystem;

std::string graph_text(const std::string& nodes, const std::string& outputs = "") {
  return R"({"format": "miniqat.graph", "version": 1, "nodes": [)" + nodes + R"(], "outputs": [)" + outputs + "]}";
}

/// logits = x W + b and their loss. `offset` is a variable that does not learn.
const std::string kClassifier = graph_text(R"(
  {"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 3]}},
  {"name": "labels", "op": "Placeholder", "attrs": {"shape": [2], "dtype": "int32"}},
  {"name": "weights", "op": "Variable", "attrs": {"shape": [3, 2]}},
  {"name": "biases", "op": "Variable", "attrs": {"shape": [2]}},
  {"name": "offset", "op": "Variable", "attrs": {"shape": [2], "trainable": false}},
  {"name": "product", "op": "MatMul", "inputs": ["x", "weights"]},
  {"name": "shifted", "op": "Add", "inputs": ["product", "offset"]},
  {"name": "logits", "op": "BiasAdd", "inputs": ["shifted", "biases"]},
  {"name": "loss", "op": "SoftmaxCrossEntropy", "inputs": ["logits", "labels"]})",
                                           R"("logits")");

const std::vector<double> kX = {1, 2, 3, -1, 0.5, 0};
const std::vector<float> kWeights = {0.5f, -1, 0.25f, 2, -0.5f, 1};

class RunTest : public ProgramTest {
 protected:
  void feed(const NamedTensors& feeds) const { write("feeds.safetensors", feeds); }
  void write(const std::string& name, const NamedTensors& tensors) const {
    write_safetensors(path(name), {.tensors = tensors, .metadata = {}});
  }
  Outcome run(const std::string& graph, const Arguments& more) const {
    place_.write("graph.json", graph);
    return program("run --graph graph.json --threads 1 --out out.safetensors" + more);
  }
  /// What the program writes on the fed tensors.
  NamedTensors compute(const std::string& graph, const Arguments& more) const {
    return expect_success(run(graph, "--feeds feeds.safetensors" + more)).status == 0
               ? read_safetensors(path("out.safetensors")).tensors
               : NamedTensors();
  }

  /// Feeds and a checkpoint for kClassifier, labels as int64 and x as float64 as NumPy has them.
  void prepare_classifier() const {
    feed({{"x", Tensor::from(Shape{2, 3}, kX)}, {"labels", Tensor::from(Shape{2}, std::vector<std::int64_t>{0, 1})}});
    write("weights.safetensors", {{"weights", Tensor::from(Shape{3, 2}, kWeights)},
                                  {"biases", Tensor::from(Shape{2}, std::vector<float>{0.1f, -0.2f})},
                                  {"offset", Tensor::from(Shape{2}, std::vector<float>{1, 0})}});
  }
};

std::set<std::string> names_of(const NamedTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  return names;
}

void expect_values(const NamedTensors& tensors, const std::string& name, const std::vector<double>& wanted,
                   double tolerance = 1e-6) {
  ASSERT_TRUE(tensors.contains(name)) << name;
  const Tensor values = tensors.at(name).to(DType::kFloat64);
  ASSERT_EQ(values.elements(), static_cast<std::int64_t>(wanted.size())) << name;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(values.data<double>()[i], wanted[i], tolerance) << name << " at " << i;
}

TEST_F(RunTest, FetchesAndGradientsAreThoseOfTheHand) {
  prepare_classifier();
  const NamedTensors out =
      compute(kClassifier, {"--checkpoint", "weights.safetensors", "--fetch", "logits,loss", "--gradients-of", "loss"});
  EXPECT_EQ(names_of(out), (std::set<std::string>{"logits", "loss", "grad/weights", "grad/biases", "grad/x"}));

  double logits[2][2], d_logits[2][2], loss = 0;
  for (int n = 0; n < 2; ++n) {
    for (int c = 0; c < 2; ++c) {
      logits[n][c] = (c == 0 ? 1 + 0.1 : -0.2);
      for (int k = 0; k < 3; ++k) logits[n][c] += kX[3 * n + k] * kWeights[2 * k + c];
    }
    const double sum = std::exp(logits[n][0]) + std::exp(logits[n][1]);
    loss += (std::log(sum) - logits[n][n]) / 2;
    for (int c = 0; c < 2; ++c) d_logits[n][c] = (std::exp(logits[n][c]) / sum - (c == n ? 1 : 0)) / 2;
  }
  expect_values(out, "logits", {logits[0][0], logits[0][1], logits[1][0], logits[1][1]});
  expect_values(out, "loss", {loss});
  expect_values(out, "grad/biases", {d_logits[0][0] + d_logits[1][0], d_logits[0][1] + d_logits[1][1]});
  std::vector<double> d_x, d_weights;
  for (int n = 0; n < 2; ++n)
    for (int k = 0; k < 3; ++k) d_x.push_back(d_logits[n][0] * kWeights[2 * k] + d_logits[n][1] * kWeights[2 * k + 1]);
  for (int k = 0; k < 3; ++k)
    for (int c = 0; c < 2; ++c) d_weights.push_back(kX[k] * d_logits[0][c] + kX[3 + k] * d_logits[1][c]);
  expect_values(out, "grad/x", d_x);
  expect_values(out, "grad/weights", d_weights);
}

TEST_F(RunTest, ATensorsGradientIsThatOfItsSum) {
  prepare_classifier();
  const NamedTensors out = compute(kClassifier, {"--checkpoint", "weights.safetensors", "--gradients-of", "logits"});
  EXPECT_EQ(names_of(out), (std::set<std::string>{"grad/weights", "grad/biases", "grad/x"}));
  expect_values(out, "grad/biases", {2, 2});
  expect_values(out, "grad/x", {-0.5, 2.25, 0.5, -0.5, 2.25, 0.5});
}

/// A checkpoint that lacks a variable is refused, unless asked to give what it has.
TEST_F(RunTest, ByNameTakesWhatFits) {
  prepare_classifier();
  NamedTensors weights = read_safetensors(path("weights.safetensors")).tensors;
  weights.erase("biases");
  write_safetensors(path("part.safetensors"), {.tensors = weights, .metadata = {}});
  const NamedTensors out = compute(kClassifier, {"--checkpoint", "part.safetensors", "--by-name", "--fetch", "logits"});
  EXPECT_TRUE(out.contains("logits"));
  expect_error(program("run --graph graph.json --feeds feeds.safetensors --checkpoint part.safetensors --fetch logits "
                       "--out o.safetensors"),
               1, {"\"biases\" is missing"});
}

TEST_F(RunTest, AnInputsOwnGradientIsOne) {
  prepare_classifier();
  const NamedTensors out = compute(kClassifier, {"--checkpoint", "weights.safetensors", "--gradients-of", "x"});
  expect_values(out, "grad/x", std::vector<double>(6, 1));
  expect_values(out, "grad/biases", {0, 0});
}

TEST_F(RunTest, VariablesWithoutACheckpointComeFromTheSeed) {
  prepare_classifier();
  const std::string graph = graph_text(R"(
    {"name": "w", "op": "Variable", "attrs": {"shape": [5], "initializer": {"type": "truncated_normal", "stddev": 1}}})");
  feed({});
  const NamedTensors one = compute(graph, {"--fetch", "w"});
  const NamedTensors again = compute(graph, {"--fetch", "w", "--seed", "1"});
  const NamedTensors two = compute(graph, {"--fetch", "w", "--seed", "2"});
  EXPECT_TRUE(std::ranges::equal(one.at("w").values<float>(), again.at("w").values<float>()));
  EXPECT_FALSE(std::ranges::equal(one.at("w").values<float>(), two.at("w").values<float>()));
}

const std::string kTraining = graph_text(R"(
  {"name": "x", "op": "Placeholder", "attrs": {"shape": [4, 2]}},
  {"name": "gamma", "op": "Variable", "attrs": {"shape": [2], "initializer": {"type": "constant", "value": 2}}},
  {"name": "beta", "op": "Variable", "attrs": {"shape": [2], "initializer": {"type": "constant", "value": 0.5}}},
  {"name": "mean", "op": "Variable", "attrs": {"shape": [2], "trainable": false,
      "initializer": {"type": "constant", "value": 1}}},
  {"name": "variance", "op": "Variable", "attrs": {"shape": [2], "trainable": false,
      "initializer": {"type": "constant", "value": 3}}},
  {"name": "bn", "op": "BatchNorm", "inputs": ["x", "gamma", "beta", "mean", "variance"],
      "attrs": {"epsilon": 0.001, "decay": 0.9}},
  {"name": "q/min", "op": "Variable", "attrs": {"shape": [], "trainable": false}},
  {"name": "q/max", "op": "Variable", "attrs": {"shape": [], "trainable": false}},
  {"name": "q", "op": "FakeQuant", "inputs": ["x", "q/min", "q/max"], "attrs": {"ema_decay": 0.5}})",
                                         R"("bn", "q")");

TEST_F(RunTest, ATrainingRunUpdatesStatisticsAndRanges) {
  feed({{"x", Tensor::from(Shape{4, 2}, std::vector<float>{1, -4, 2, 0, 3, 4, 6, 8})}});
  const NamedTensors out = compute(kTraining, {"--train", "--fetch", "bn,bn:1,bn:2,q"});
  EXPECT_EQ(names_of(out), (std::set<std::string>{"bn", "bn:1", "bn:2", "q", "variable/mean", "variable/variance",
                                                  "variable/q/min", "variable/q/max", "variable/q/num_updates"}));
  // Columns 1 2 3 6 and -4 0 4 8: means 3 and 2, sums of squares around them 14 and 80.
  expect_values(out, "bn:1", {3, 2});
  expect_values(out, "bn:2", {14.0 / 4, 80.0 / 4});
  expect_values(out, "variable/mean", {0.9 * 1 + 0.1 * 3, 0.9 * 1 + 0.1 * 2});
  expect_values(out, "variable/variance", {0.9 * 3 + 0.1 * 14 / 3, 0.9 * 3 + 0.1 * 80 / 3}, 1e-5);
  const double left = std::sqrt(3.501), right = std::sqrt(20.001);
  expect_values(out, "bn",
                {0.5 - 4 / left, 0.5 - 12 / right, 0.5 - 2 / left, 0.5 - 4 / right, 0.5, 0.5 + 4 / right,
                 0.5 + 6 / left, 0.5 + 12 / right},
                1e-5);
  // The first batch sets the range.
  expect_values(out, "variable/q/min", {-4});
  expect_values(out, "variable/q/max", {8});
  expect_values(out, "variable/q/num_updates", {1});
}

TEST_F(RunTest, ASecondTrainingRunGoesOnFromTheFirst) {
  feed({{"x", Tensor::from(Shape{4, 2}, std::vector<float>{1, -4, 2, 0, 3, 4, 6, 8})}});
  const NamedTensors first = compute(kTraining, {"--train"});
  NamedTensors state = {{"gamma", Tensor::from(Shape{2}, std::vector<float>{2, 2})},
                        {"beta", Tensor::from(Shape{2}, std::vector<float>{0.5, 0.5})}};
  for (const auto& [name, tensor] : first)
    if (name.starts_with("variable/")) state[name.substr(9)] = tensor;
  write("state.safetensors", state);
  feed({{"x", Tensor::from(Shape{4, 2}, std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2})}});
  const NamedTensors second = compute(kTraining, {"--train", "--checkpoint", "state.safetensors"});
  // biased = 0.5 * (0.5 * first) + 0.5 * second, divided by 1 - 0.5^2; the range of the second batch is [0, 2].
  expect_values(second, "variable/q/min", {0.25 * -4 / 0.75});
  expect_values(second, "variable/q/max", {(0.25 * 8 + 0.5 * 2) / 0.75});
  expect_values(second, "variable/q/num_updates", {2});
  expect_values(second, "variable/mean", {0.9 * 1.2 + 0.1 * 1.5, 0.9 * 1.1 + 0.1 * 1.5});
}

TEST_F(RunTest, ARunWithoutTrainChangesNothing) {
  feed({{"x", Tensor::from(Shape{4, 2}, std::vector<float>{1, -4, 2, 0, 3, 4, 6, 8})}});
  const NamedTensors out = compute(kTraining, {"--fetch", "bn,bn:1,bn:2"});
  EXPECT_EQ(names_of(out), (std::set<std::string>{"bn", "bn:1", "bn:2"}));
  expect_values(out, "bn:1", {1, 1});
  expect_values(out, "bn:2", {3, 3});
}

// Two bits from 0 to 3: a quantizer rounds.
TEST_F(RunTest, TheStepDecidesWhetherADelayedQuantizerActs) {
  const std::string graph = graph_text(R"(
    {"name": "x", "op": "Placeholder", "attrs": {"shape": [3]}},
    {"name": "min", "op": "Constant", "attrs": {"shape": [], "value": 0}},
    {"name": "max", "op": "Constant", "attrs": {"shape": [], "value": 3}},
    {"name": "q", "op": "FakeQuant", "inputs": ["x", "min", "max"], "attrs": {"bits": 2, "range": "fixed", "delay": 5}})");
  feed({{"x", Tensor::from(Shape{3}, std::vector<float>{1.25, 1.5, 7})}});
  const std::vector<double> rounded = {1, 2, 3}, untouched = {1.25, 1.5, 7};
  expect_values(compute(graph, {"--fetch", "q", "--train", "--step", "3"}), "q", untouched);
  expect_values(compute(graph, {"--fetch", "q", "--train", "--step", "4"}), "q", rounded);
  expect_values(compute(graph, {"--fetch", "q", "--step", "4"}), "q", untouched);
  expect_values(compute(graph, {"--fetch", "q", "--step", "5"}), "q", rounded);
}

TEST_F(RunTest, TheReferenceInDoubleAgreesWithTheFastBackend) {
  const std::string graph = graph_text(R"(
    {"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 7, 7, 3]}},
    {"name": "w", "op": "Variable", "attrs": {"shape": [3, 3, 3, 5], "initializer": {"type": "he_normal"}}},
    {"name": "conv", "op": "Conv2D", "inputs": ["x", "w"], "attrs": {"strides": [2, 2]}},
    {"name": "relu", "op": "Relu", "inputs": ["conv"]},
    {"name": "pool", "op": "AvgPool", "inputs": ["relu"], "attrs": {"window": [2, 2], "strides": [2, 2]}},
    {"name": "square", "op": "Square", "inputs": ["pool"]})");
  std::vector<float> pixels(2 * 7 * 7 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::sin(static_cast<float>(i));
  feed({{"x", Tensor::from(Shape{2, 7, 7, 3}, pixels)}});
  const Arguments asked = "--fetch square,conv --gradients-of square";
  const NamedTensors fast = compute(graph, asked);
  Arguments reference = asked;
  reference.insert(reference.end(), {"--backend", "reference", "--precision", "float64"});
  const NamedTensors exact = compute(graph, reference);
  ASSERT_EQ(names_of(exact), (std::set<std::string>{"conv", "square", "grad/w", "grad/x"}));
  for (const auto& [name, tensor] : exact) {
    ASSERT_EQ(tensor.dtype(), DType::kFloat64) << name;
    const auto values = tensor.values<double>();
    expect_values(fast, name, {values.begin(), values.end()}, 1e-4);
  }
}

TEST_F(RunTest, OutputsAreFetchedWhenNothingElseIsAsked) {
  feed({{"x", Tensor::from(Shape{4, 2}, std::vector<float>(8, 1))}});
  const std::set<std::string> names = names_of(compute(kTraining, {"--train"}));
  EXPECT_TRUE(names.contains("bn"));
  EXPECT_TRUE(names.contains("q"));
}

TEST_F(RunTest, WhatDoesNotFitIsNamed) {
  prepare_classifier();
  const Tensor x = Tensor::from(Shape{2, 3}, kX);
  write("wrong_shape.safetensors", {{"x", Tensor(Shape{2, 4})}});
  write("wrong_type.safetensors", {{"x", Tensor(Shape{2, 3}, DType::kInt32)}});
  write("unknown.safetensors", {{"x", x}, {"y", x}});
  write("variable.safetensors", {{"x", x}, {"biases", Tensor(Shape{2})}});
  write("large.safetensors",
        {{"x", x}, {"labels", Tensor::from(Shape{2}, std::vector<std::int64_t>{0, std::int64_t{1} << 40})}});
  write("huge.safetensors", {{"x", Tensor::from(Shape{2, 3}, std::vector<double>{1, 2, 3, -1e39, 0, 0})}});
  write("label.safetensors", {{"x", x}, {"labels", Tensor::from(Shape{2}, std::vector<std::int64_t>{0, 2})}});
  place_.write("cut.safetensors", bytes_of(path("feeds.safetensors")).substr(0, 100));
  const auto refuses = [&](const Arguments& line, int status, const std::vector<std::string>& parts) {
    SCOPED_TRACE(::testing::PrintToString(line));
    expect_error(run(kClassifier, line), status, parts);
    EXPECT_FALSE(fs::exists(path("out.safetensors")));
  };
  const auto fed = [](const std::string& file, const std::string& fetch) {
    return Arguments{"--feeds", file + ".safetensors", "--fetch", fetch};
  };
  refuses(fed("feeds", "logitz"), 1, {"logitz", "did you mean \"logits\""});
  refuses(fed("huge", "logits"), 1, {"feed \"x\"", "-1e+39", "float32"});
  refuses(fed("feeds", "logits:1"), 1, {"logits", "1"});
  refuses("--fetch logits", 1, {"\"x\"", "[2,3]"});
  refuses(fed("wrong_shape", "logits"), 1, {"\"x\"", "[2,3]", "[2,4]"});
  refuses(fed("wrong_type", "logits"), 1, {"\"x\"", "float32", "int32"});
  refuses(fed("unknown", "logits"), 1, {"unknown.safetensors", "\"y\""});
  refuses(fed("variable", "logits"), 1, {"\"biases\"", "Placeholder"});
  refuses(fed("large", "loss"), 1, {"labels", "1099511627776"});
  refuses(fed("label", "loss"), 1, {"label 2", "row 1"});
  refuses(fed("cut", "logits"), 1, {"cut.safetensors"});
  refuses(fed("missing", "logits"), 1, {"missing.safetensors"});
  refuses({}, 1, {"\"x\"", "[2,3]"});
  expect_error(run(graph_text(""), {}), 2, {"graph.json names no outputs", "--fetch", "--gradients-of"});
  refuses("--fetch logits --precision float64", 2, {"--precision", "--backend reference"});
  refuses("--fetch logits --step -1", 2, {"--step"});
  refuses("--fetch logits --feeds feeds.safetensors --checkpoint feeds.safetensors", 1,
          {"feeds.safetensors", "biases"});
  expect_error(program("run --graph graph.json --feeds feeds.safetensors --fetch logits --out nowhere/out.safetensors"),
               1, {"nowhere/out.safetensors"});
}

}  // namespace
}  // namespace miniqat::testing::run_test
