// Options of the rewrite from the flags to the integers and the exports: --full-range-weights, --sums-bits,
// --dampening.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "integer/format/model_file.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::training_options_test {
namespace {

class FullRangeTest : public TinyTaskTest {
 protected:
  Outcome export_as(const std::string& run, const std::string& format, const Arguments& more = {}) const {
    return program(Arguments{"export", "--run", run, "--format", format, "--out", run + "." + format} + more);
  }
  /// Weights that are the lowest integer of all.
  std::int64_t lowest_weights(const std::string& run) const {
    std::int64_t count = 0;
    for (const integer::Operation& operation : integer::read_model(path(run + ".miniqat")).operations)
      if (const auto* layer = std::get_if<integer::Layer>(&operation.action))
        count += std::ranges::count(layer->weights, 0);
    return count;
  }
};

TEST_F(FullRangeTest, AllIntegersGoIntoEveryExport) {
  for (const std::string channels : {"--per-channel", "--per-channel=false"}) {
    const std::string run = channels.substr(2);
    expect_success(train(run, {"--weight-bits", "2", "--ranges", "auto", "--full-range-weights", channels}));
    expect_text(expect_integers(run), {"reference loops: equal"});
    EXPECT_GT(lowest_weights(run), 0);
  }
  expect_success(train("narrow", "--weight-bits 2 --ranges auto"));
  expect_success(export_as("narrow", "miniqat"));
  EXPECT_EQ(lowest_weights("narrow"), 0);
}

TEST_F(FullRangeTest, WhatTensorFlowLiteCannotHoldIsToldFromWhatItCan) {
  const Arguments full = "--per-channel --symmetric-weights --full-range-weights";
  expect_success(train("bytes", full));
  expect_error(export_as("bytes", "tflite"), 1,
               {"has a weight of -128", "with --symmetric-weights and without --full-range-weights, or export as"});
  expect_success(export_as("bytes", "onnx"));
}

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
    const std::string& run = ranges;
    expect_resumes(run, "--model residual.json" + kWidths + Arguments{"--ranges", ranges});
    EXPECT_EQ(Json::parse(bytes_of(path(run) / "config.json"))["sums_bits"], 8);
    expect_both(run + "/eval_graph.json");
    expect_text(program({"inspect", run}).out, {"one/edge_quant"});
    expect_text(expect_integers(run, "onnx"), {"W4A4-8 mixed"});
    expect_error(program({"export", "--run", run, "--format", "tflite", "--out", "model.tflite"}), 1, {"4 bits"});
  }
}

TEST_F(SumsBitsTest, CalibrationSetsBothRanges) {
  expect_success(train("float", "--model residual.json --float"));
  const Outcome outcome =
      expect_success(program("calibrate --run float --batches 2 --verbose --out calibrated" + kWidths));
  expect_both("calibrated/eval_graph.json");
  expect_text(outcome.out, {"one/act_quant", "one/edge_quant"});
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

class DampeningTest : public TinyTaskTest {
 protected:
  static Arguments dampened(const std::string& dampening, const Arguments& more) {
    return "--model norm.json --weight-bits 3 --ranges learned" + Arguments{"--dampening", dampening} + more;
  }
  Outcome train_dampened(const std::string& out, const std::string& dampening, const Arguments& more = {}) const {
    return train(out, dampened(dampening, more));
  }
  NamedTensors tensors(const std::string& run) const {
    return read_safetensors(path(run) / "checkpoint.safetensors").tensors;
  }
};

TEST_F(DampeningTest, ResumesAsNeverStopped) {
  for (const std::string fold : {"tf", "single"}) {
    expect_resumes(fold, dampened("0.5", {"--bn-fold", fold}));
    expect_integers(fold, "json");
  }
  EXPECT_EQ(*tensors("tf").at("conv1/weights_quant/num_dampened").data<float>(), 12);
  expect_text(bytes_of(path("tf/train_graph.json")), {"\"dampening\": 0.5, \"dampening_steps\": 12"});
  expect_success(train_dampened("without", "0", {"--bn-fold", "tf"}));
  EXPECT_NE(checkpoint_bytes("without"), checkpoint_bytes("tf"));
  EXPECT_FALSE(tensors("without").contains("conv1/weights_quant/num_dampened"));
}

// The steps of the run before would leave nothing to grow over.
TEST_F(DampeningTest, GrowsInARunFromADampenedOne) {
  expect_success(train_dampened("first", "0.5"));
  expect_success(train_dampened("second", "0.5", {"--init-checkpoint", path("first").string()}));
  EXPECT_EQ(*tensors("second").at("conv1/weights_quant/num_dampened").data<float>(), 12);
}

// The pull grows over the steps of the run. A longer run was refused: its graph has another number of them.
TEST_F(DampeningTest, GoesOnLonger) {
  const auto graph = [this](const char* file) { return bytes_of(path("run") / file); };
  expect_success(train_dampened("whole", "0.5", {"--steps", "20"}));
  expect_success(train_dampened("run", "0.5"));
  const std::string shorter = graph("train_graph.json");
  expect_success(resume("run", "--steps 20 --stop-at 16"));
  for (const char* file : {"train_graph.json", "eval_graph.json"})
    EXPECT_EQ(graph(file), bytes_of(path("whole") / file));
  // As if it had died before it wrote the graphs.
  std::ofstream(path("run/train_graph.json"), std::ios::binary) << shorter;
  expect_success(resume("run"));
  EXPECT_EQ(graph("train_graph.json"), bytes_of(path("whole/train_graph.json")));
  EXPECT_EQ(*tensors("run").at("conv1/weights_quant/num_dampened").data<float>(), 20);
}

}  // namespace
}  // namespace miniqat::testing::training_options_test
