// --sums-bits as a user gives it: to `train`, to `calibrate`, to `quantize`, to `rewrite`, and what a run makes of it.

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::sums_bits_test {
namespace {

using Json = nlohmann::json;

const Arguments kWidths = "--weight-bits 4 --activation-bits 4 --sums-bits 8";

class SumsBitsTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    layers::register_ops();
    quantize::register_ops();
    Graph graph;
    Output x = layers::placeholder(graph, "images", {4, 8, 8, 1});
    x = layers::relu(graph, "in/Relu", conv(graph, "in", x));
    for (const std::string scope : {"one", "two"}) {
      const Output sum = layers::add(graph, scope + "/Add", conv(graph, scope + "/conv", x), x);
      x = layers::relu(graph, scope + "/Relu", sum);
    }
    x = layers::reshape(graph, "flat", x, {.shape = {4, -1}});
    x = layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {256, 10}));
    graph.set_outputs({layers::bias_add(graph, "fc/BiasAdd", x, layers::variable(graph, "fc/biases", {10}))});
    place_.write("residual.json", graph_to_json(graph));
  }

  static Output conv(Graph& graph, const std::string& scope, Output x) {
    const Output weights = layers::variable(graph, scope + "/weights", {3, 3, x.shape()[3], 4});
    return layers::bias_add(graph, scope + "/BiasAdd", layers::conv2d(graph, scope + "/Conv2D", x, weights),
                            layers::variable(graph, scope + "/biases", {4}));
  }

  Outcome train_residual(const std::string& out, const Arguments& more = {}) const {
    return train(out, "--model residual.json" + kWidths + more);
  }
  void expect_both(const std::string& graph) const {
    const Graph found = read_graph(path(graph));
    const auto bits = [&](const std::string& name) { return found.at(name).as<quantize::FakeQuant>()->bits; };
    for (const char* wide : {"in/act_quant", "one/conv/conv_quant", "one/act_quant", "two/conv/conv_quant"})
      EXPECT_EQ(bits(wide), 8) << wide;
    for (const char* narrow : {"in/edge_quant", "one/edge_quant", "two/act_quant"})
      EXPECT_EQ(bits(narrow), 4) << narrow;
  }
};

TEST_F(SumsBitsTest, ARunKeepsIt) {
  for (const std::string ranges : {"observed", "learned"}) {
    const std::string &run = ranges, cut = ranges + "-cut";
    expect_success(train_residual(run, {"--ranges", ranges}));
    EXPECT_EQ(Json::parse(bytes_of(path(run) / "config.json"))["sums_bits"], 8);
    expect_both(run + "/eval_graph.json");
    expect_success(train_residual(cut, {"--ranges", ranges, "--stop-at", "5"}));
    expect_success(resume(cut));
    EXPECT_EQ(checkpoint_bytes(cut), checkpoint_bytes(run));
    expect_text(program({"inspect", run}).out, {"one/edge_quant"});
    const Json verified = Json::parse(program({"verify", "--run", run, "--json", "--no-runtimes"}).out);
    EXPECT_TRUE(verified["quantization"].get<std::string>().starts_with("W4A4-8 mixed")) << verified;
    expect_success(program({"export", "--run", run, "--format", "onnx", "--out", "model.onnx"}));
    expect_error(program({"export", "--run", run, "--format", "tflite", "--out", "model.tflite"}), 1, {"4 bits"});
  }
}

TEST_F(SumsBitsTest, CalibrationSetsBothRanges) {
  expect_success(train("float", "--model residual.json --float"));
  for (const std::string method : {"minmax", "moving-average", "percentile", "mse"}) {
    const Outcome outcome = expect_success(program(
        Arguments{"calibrate", "--run", "float", "--method", method, "--batches", "2", "--verbose", "--out", method} +
        kWidths));
    expect_both(method + "/eval_graph.json");
    expect_text(outcome.out, {"one/act_quant", "one/edge_quant"});
  }
}

TEST_F(SumsBitsTest, QuantizeKeepsThemWideUnlessToldOtherwise) {
  expect_success(train("float", "--model residual.json --float"));
  const auto quantized = [&](const std::string& out, const std::string& bits, const Arguments& more = {}) {
    expect_success(program("quantize --run float --steps 2" +
                           Arguments{"--weight-bits", bits, "--activation-bits", bits, "--out", out} + more));
    return Json::parse(bytes_of(path(out) / "trained" / "config.json"))["sums_bits"];
  };
  EXPECT_EQ(quantized("four", "4"), 8);
  expect_both("four/trained/eval_graph.json");
  EXPECT_EQ(quantized("narrow", "4", {"--sums-bits", "4"}), 4);
  EXPECT_EQ(read_graph(path("narrow/trained/eval_graph.json")).find("one/edge_quant"), nullptr);
  EXPECT_TRUE(quantized("five", "5").is_null());
  place_.write("bits.json", R"({"*": 4})");
  EXPECT_EQ(quantized("config", "8", {"--bits-config", "bits.json"}), 8);
  expect_both("config/trained/eval_graph.json");
  EXPECT_TRUE(quantized("wide", "9", {"--bits-config", "bits.json"}).is_null()) << "fewer than 9 would be refused";
  place_.write("own.json", R"({"*": {"activation_bits": 4, "sums_bits": 4}})");
  quantized("own", "8", {"--bits-config", "own.json"});
  EXPECT_EQ(read_graph(path("own/trained/eval_graph.json")).find("one/edge_quant"), nullptr);
}

TEST_F(SumsBitsTest, WidthsThatCannotBeAreRefused) {
  const auto refuses = [&](const Arguments& more, const std::vector<std::string>& parts) {
    expect_error(program("rewrite --graph residual.json" + more), 2, parts);
    expect_error(train("run", "--model residual.json" + more), 2, parts);
  };
  refuses("--sums-bits 1 --activation-bits 4", {"--sums-bits must be 2 to 16, not 1"});
  refuses("--sums-bits 17", {"--sums-bits must be 2 to 16, not 17"});
  refuses("--sums-bits 4", {"--sums-bits must be 8 or more, the bits of activations, not 4"});
  refuses("--sums-bits many", {"--sums-bits"});
  expect_success(program("rewrite --graph residual.json --out once.json" + kWidths));
  expect_error(program("rewrite --graph once.json --activation-bits 4 --sums-bits 7"), 2,
               {"--sums-bits 7: once.json was rewritten before: in/act_quant has 8 bits, not 7"});
}

}  // namespace
}  // namespace miniqat::testing::sums_bits_test
