// A graph that was rewritten before: what a run on it says of itself, and what cannot be asked of it any more.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::rewritten_graph_test {
namespace {

using Json = nlohmann::json;

class RewrittenGraphTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    expect_success(rewrite({"--weight-bits", "2", "--activation-bits", "3", "--quant-delay", "2"}));
  }

  Outcome rewrite(const Arguments& more, const std::string& graph = "tiny.json", const std::string& out = "q.json") {
    return program(Arguments{"rewrite", "--graph", graph, "--out", out} + more);
  }
  Json json(const std::string& file) const { return Json::parse(bytes_of(path(file))); }
};

TEST_F(RewrittenGraphTest, ARunSaysWhatItsGraphIs) {
  const Outcome trained = expect_success(train("run", "--model q.json"));
  expect_text(trained.out, {"W2A3"});
  EXPECT_EQ(trained.out.find(", 0 quantizers"), std::string::npos) << trained.out;
  EXPECT_EQ(json("run/summary.json")["quantization"], "W2A3");
  EXPECT_EQ(json("run/summary.json")["bits"], Json({{"weights", 2}, {"activations", 3}}));
  const Json evaluated = Json::parse(program("eval --run run --json --threads 1").out);
  EXPECT_EQ(evaluated["quantization"], "W2A3");
  EXPECT_EQ(evaluated["bits"], Json({{"weights", 2}, {"activations", 3}}));
  expect_text(program("export --run run --format json --out run.json").out, {"q.json W2A3, "});
  expect_text(program("inspect run").out, {"quantizers (W2A3)"});
  const Json verified = Json::parse(program("verify --run run --json --no-runtimes").out);
  EXPECT_EQ(verified["quantization"], "W2A3");
}

TEST_F(RewrittenGraphTest, TheDefaultDirectoryIsNamedAfterIt) {
  Arguments line = train_command("unused", "--model q.json --stop-at 1");
  const auto out = std::ranges::find(line, "--out");
  line.erase(out, out + 2);
  expect_success(program(line));
  EXPECT_TRUE(std::filesystem::exists(path("runs/q-mnist-w2a3-seed1/summary.json")));
}

TEST_F(RewrittenGraphTest, OtherSettingsAreRefusedByName) {
  const std::vector<std::pair<Arguments, std::vector<std::string>>> refused = {
      {{"--weight-bits", "8"}, {"--weight-bits 8", "q.json", "conv1/weights_quant has 2 bits, not 8"}},
      {{"--activation-bits", "8"}, {"--activation-bits 8", "has 3 bits, not 8"}},
      {{"--per-channel"}, {"--per-channel", "has one range, not a range per channel"}},
      {{"--symmetric-weights"}, {"--symmetric-weights", "has an asymmetric one, not a symmetric range"}},
      {{"--quant-delay", "7"}, {"--quant-delay 7", "has a delay of 2, not 7"}},
  };
  for (const auto& [flags, texts] : refused) {
    expect_error(rewrite(flags, "q.json", "again.json"), 2, texts);
    EXPECT_FALSE(std::filesystem::exists(path("again.json")));
    expect_error(train("run", "--model q.json" + flags), 2, texts);
    EXPECT_FALSE(std::filesystem::exists(path("run")));
  }
  // A value of --config is as good as a flag, if it is not what the flag's absence means.
  place_.write("c.json", R"({"weight_bits": 4})");
  expect_error(train("run", "--model q.json --config c.json"), 2,
               {"--weight-bits 4", "conv1/weights_quant has 2 bits, not 4"});
  place_.write("bits.json", R"({"conv1": {"weight_bits": 8}})");
  expect_error(rewrite({"--bits-config", "bits.json"}, "q.json", "again.json"), 2,
               {"--bits-config bits.json", "conv1/weights_quant has 2 bits, not 8"});
}

TEST_F(RewrittenGraphTest, TheSameSettingsAreTheSameAsOnce) {
  const Arguments same = "--weight-bits 2 --activation-bits 3 --quant-delay 2";
  for (const Arguments& flags : {same, Arguments{}}) {
    const Outcome again = rewrite(flags, "q.json", "again.json");
    EXPECT_EQ(again.status, 0);
    EXPECT_EQ(again.err, "note: q.json is quantized already (W2A3, 4 quantizers); nothing changed\n");
    EXPECT_EQ(bytes_of(path("again.json")), bytes_of(path("q.json")));
  }
}

TEST_F(RewrittenGraphTest, AScopeCannotTakeQuantizersAway) {
  const std::vector<std::string> parts = {"--scope conv1", "q.json was rewritten before", "is outside of it"};
  expect_error(rewrite({"--scope", "conv1"}, "q.json", "again.json"), 2, parts);
  expect_error(train("run", "--model q.json --scope conv1"), 2, parts);
  // Scope after scope is no contradiction, nor is the same one twice.
  EXPECT_EQ(rewrite({"--scope", "conv1", "--weight-bits", "4"}, "tiny.json", "part.json").status, 0);
  expect_success(rewrite({"--scope", "fc", "--weight-bits", "3"}, "part.json", "both.json"));
  EXPECT_EQ(rewrite({"--scope", "conv1", "--weight-bits", "4"}, "part.json", "again.json").status, 0);
  expect_text(program("inspect both.json").out, {"(W3-4A8 mixed)"});
}

TEST_F(RewrittenGraphTest, TheInputsQuantizerIsGivenOrRefused) {
  expect_success(rewrite({"--quantize-input"}, "q.json", "given.json"));
  expect_text(program("inspect given.json").out, {"images/input_quant"});
  expect_error(rewrite({"--quantize-input=false"}, "given.json", "again.json"), 2,
               {"--quantize-input", "images has the quantizer images/input_quant"});
}

TEST_F(RewrittenGraphTest, PoolsKeepTheirQuantizers) {
  std::string text = tiny_classifier();
  text.replace(text.find("MaxPool"), 7, "AvgPool");
  place_.write("pool.json", text);
  expect_success(rewrite({}, "pool.json", "pooled.json"));
  const std::vector<std::string> parts = {"--float-pools", "pool1 has the quantizer pool1/activation_AvgPool_quant"};
  expect_error(rewrite({"--float-pools"}, "pooled.json", "again.json"), 2, parts);
  expect_error(train("run", "--model pooled.json --float-pools"), 2, parts);
  EXPECT_EQ(rewrite({"--float-pools"}, "pool.json", "float.json").status, 0);
  expect_success(rewrite({}, "float.json", "added.json"));
}

TEST_F(RewrittenGraphTest, OfSeveralDelaysTheRunNamesTheNext) {
  EXPECT_EQ(rewrite({"--scope", "conv1", "--quant-delay", "5"}, "tiny.json", "part.json").status, 0);
  expect_success(rewrite({"--quant-delay", "30", "--scope", "fc"}, "part.json", "both.json"));
  const Outcome some = train("some", "--model both.json");
  EXPECT_EQ(some.status, 0);
  EXPECT_EQ(
      some.err,
      "warning: some quantizers were to begin later, the next at step 30 (the graph's delay), the run ended at "
      "step 12: no step was trained with them, and evaluation quantizes a network that was never trained for it\n");
  EXPECT_EQ(train("none", "--model both.json --steps 4").err,
            "warning: quantization was to begin at step 5 (the graph's delay), the run ended at step 4: no step was "
            "trained with it, and evaluation quantizes a network that was never trained for it\n");
}

// What the graph decides is no setting of the run; what it leaves open is.
TEST_F(RewrittenGraphTest, ConfigSaysNothingThatTheGraphIsNot) {
  expect_success(train("run", "--model q.json --stop-at 4"));
  const Json config = json("run/config.json");
  for (const char* setting : {"weight_bits", "activation_bits", "quant_delay"})
    EXPECT_FALSE(config.contains(setting)) << setting << " is " << config[setting];
  EXPECT_EQ(config["per_channel"], false);
  EXPECT_EQ(config["ema_decay"], 0.999);
  const std::string graph = bytes_of(path("run/train_graph.json"));
  expect_success(resume("run", "--save-every 30s"));
  EXPECT_EQ(json("run/config.json")["save_every"], "30s");
  EXPECT_FALSE(json("run/config.json").contains("weight_bits"));
  EXPECT_EQ(bytes_of(path("run/train_graph.json")), graph);
  expect_success(train("again", "--config run/config.json --model q.json"));
  EXPECT_EQ(bytes_of(path("again/train_graph.json")), graph);
  EXPECT_TRUE(checkpoint_bytes("again") == checkpoint_bytes("run"));
  expect_success(train("asked", "--model q.json --weight-bits 2"));
  EXPECT_EQ(json("asked/config.json")["weight_bits"], 2);
  EXPECT_FALSE(json("asked/config.json").contains("activation_bits"));
}

// Files of earlier versions name all settings, true or not.
TEST_F(RewrittenGraphTest, ARunWithAnOlderConfigGoesOn) {
  expect_success(train("run", "--model q.json --stop-at 4"));
  Json config = json("run/config.json");
  config.update({{"weight_bits", 8}, {"activation_bits", 8}, {"quant_delay", 0}});
  place_.write("run/config.json", config.dump());
  expect_success(resume("run"));
  EXPECT_EQ(json("run/summary.json")["quantization"], "W2A3");
}

// A range of evaluation is never observed again: such a run would end at chance without a word.
TEST_F(RewrittenGraphTest, WhatWasRewrittenForEvaluationDoesNotTrain) {
  expect_success(rewrite({"--mode", "eval"}, "q.json", "whole.json"));
  EXPECT_EQ(rewrite({"--mode", "eval", "--scope", "conv1"}, "tiny.json", "part.json").status, 0);
  std::string mixed = bytes_of(path("q.json"));
  mixed.replace(mixed.rfind("\"is_training\": true"), 19, "\"is_training\": false");
  place_.write("mixed.json", mixed);
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"whole.json", "conv1/weights_quant"}, {"part.json", "conv1/weights_quant"}, {"mixed.json", "fc/act_quant"}};
  for (const auto& [graph, first] : refused) {
    SCOPED_TRACE(graph);
    const std::vector<std::string> parts = {graph + ": [FakeQuant \"" + first + "\"] was rewritten for evaluation",
                                            "rewrite the graph that it came from"};
    expect_error(train("run", {"--model", graph}), 1, parts);
    EXPECT_FALSE(std::filesystem::exists(path("run")));
    for (const Arguments& flags : {Arguments{}, Arguments("--quantize-input"), Arguments("--quant-delay 5"),
                                   Arguments("--bn-fold single"), Arguments("--float-pools")})
      expect_error(rewrite(flags, graph, "again.json"), 1, parts);
    EXPECT_FALSE(std::filesystem::exists(path("again.json")));
  }
}

// Such a range is an input like any other; there is nothing to observe.
TEST_F(RewrittenGraphTest, ARangeThatIsFixedOnPurposeTrains) {
  std::string text = tiny_classifier();
  const std::string relu = R"("inputs": ["conv1/Relu"])";
  text.replace(text.find(relu), relu.size(), R"("inputs": ["still"])");
  text.insert(text.find(R"({"name": "pool1")"),
              R"({"name": "min", "op": "Constant", "attrs": {"shape": [], "value": 0}},
                 {"name": "max", "op": "Constant", "attrs": {"shape": [], "value": 4}},
                 {"name": "still", "op": "FakeQuant", "inputs": ["conv1/Relu", "min", "max"],
                  "attrs": {"range": "fixed", "is_training": false}},)");
  place_.write("fixed.json", text);
  expect_success(train("run", "--model fixed.json"));
  EXPECT_GT(json("run/summary.json")["test_accuracy"], 0.2);
}

// The moving statistics of a batch norm may be kept on purpose; nobody should find out from the accuracy.
TEST_F(RewrittenGraphTest, BatchNormsThatDoNotTrainAreNoted) {
  for (const bool trains : {false, true}) {
    std::string text = tiny_classifier();
    const std::string bias = R"("conv1/BiasAdd")";
    text.replace(text.find(R"("inputs": [)" + bias), 10 + bias.size() + 1, R"("inputs": ["norm")");
    std::string vectors;
    for (const std::string name : {"gamma", "beta", "mean", "variance"})
      vectors += R"({"name": ")" + name + R"(", "op": "Variable", "attrs": {"shape": [4], "trainable": )" +
                 (name.ends_with("a") ? "true" : "false") + R"(, "initializer": {"type": "constant", "value": 1}}},)";
    text.insert(text.find(R"({"name": "conv1/Relu")"),
                vectors + R"({"name": "norm", "op": "BatchNorm", "attrs": {"is_training": )" +
                    (trains ? "true" : "false") +
                    R"(}, "inputs": ["conv1/BiasAdd", "gamma", "beta", "mean", "variance"]},)");
    place_.write("norm.json", text);
    const std::string note = "note: 1 batch norm keeps its moving statistics in training (is_training false): norm\n";
    const auto says = [&](const std::string& printed) { return printed.find(note) != std::string::npos; };
    EXPECT_EQ(says(train("run", "--model norm.json --overwrite").out), !trains);
    EXPECT_EQ(says(train("run", "--model norm.json --overwrite --float").out), !trains);
    EXPECT_EQ(says(rewrite({}, "norm.json", "r.json").err), !trains);
    EXPECT_FALSE(says(rewrite({"--mode", "eval"}, "norm.json", "r.json").err));
  }
}

TEST_F(RewrittenGraphTest, FloatIsRefused) {
  expect_error(train("run", "--model q.json --float"), 2, {"--float", "q.json is quantized already (W2A3"});
}

}  // namespace
}  // namespace miniqat::testing::rewritten_graph_test
