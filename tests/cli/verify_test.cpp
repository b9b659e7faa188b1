// `miniqat verify` and `miniqat export` as a user runs them, on a run that takes milliseconds.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "integer/model_file.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class IntegersOutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_digits(place_, "digits", 64, 30);
    place_.write("tiny.json", tiny_classifier());
  }

  fs::path path(const std::string& name) const { return place_.path() / name; }
  Outcome program(const Arguments& line) const { return miniqat(line, place_.path()); }
  /// A run of 40 steps.
  void train(const std::string& out, const Arguments& more = {}) const {
    Arguments line = {"train",   "--model", "tiny.json", "--dataset", "mnist", "--data-dir", "digits",
                      "--steps", "40",      "--threads", "1",         "--out", out};
    line.insert(line.end(), more.begin(), more.end());
    expect_success(program(line));
  }
  Outcome verify(const Arguments& more = {}) const {
    Arguments line = {"verify", "--run", "run", "--threads", "1", "--no-runtimes"};
    line.insert(line.end(), more.begin(), more.end());
    return program(line);
  }
  Outcome export_as(const std::string& format, const std::string& out, const Arguments& more = {}) const {
    Arguments line = {"export", "--run", "run", "--format", format, "--out", out};
    line.insert(line.end(), more.begin(), more.end());
    return program(line);
  }
  std::int64_t size(const std::string& name) const { return static_cast<std::int64_t>(fs::file_size(path(name))); }

  TempDir place_;
};

TEST_F(IntegersOutTest, VerifyComparesEveryOperation) {
  train("run");
  const Outcome outcome = verify({"--json", "--out", "verify.json"});
  expect_success(outcome);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(Json::parse(bytes_of(path("verify.json"))), json);
  EXPECT_EQ(json["simulated"]["examples"], 30);
  EXPECT_TRUE(json["reference_equal"]);
  EXPECT_GT(json["reference_examples"], 0);
  std::vector<std::string> operations;
  for (const Json& layer : json["layers"]) {
    operations.push_back(layer["operation"]);
    EXPECT_LE(layer["alone"]["largest_difference"], 1) << layer["operation"];
    EXPECT_GT(layer["alone"]["share"], 0.99) << layer["operation"];
    EXPECT_GT(layer["alone"]["count"], 0);
  }
  EXPECT_EQ(operations, (std::vector<std::string>{"conv1/Conv2D", "pool1", "flatten", "fc/MatMul"}));
  const Outcome integer = program({"eval", "--run", "run", "--integer", "--json", "--threads", "1"});
  expect_success(integer);
  EXPECT_EQ(Json::parse(integer.out)["correct"], json["integer"]["correct"]);
}

TEST_F(IntegersOutTest, ATableIsForPeople) {
  train("run", {"--weight-bits", "4", "--activation-bits", "4"});
  const Outcome outcome = verify({"--examples", "7"});
  expect_success(outcome);
  for (const char* text :
       {"7 test pictures", "simulated", "integer", "conv1/Conv2D", "given equal inputs", "reference loops: equal"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in\n" << outcome.out;
}

TEST_F(IntegersOutTest, ABrokenBoundIsAFailure) {
  train("run");
  expect_success(verify({"--max-accuracy-difference", "100", "--min-agreement", "0", "--max-steps", "1"}));
  const Outcome outcome = verify({"--min-runtime-agreement", "99"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("no other runtime could be asked"), std::string::npos) << outcome.err;
  EXPECT_EQ(verify({"--min-agreement", "101"}).status, 2);
}

TEST_F(IntegersOutTest, EveryFormatIsWritten) {
  train("run");
  expect_success(export_as("miniqat", "model.miniqat"));
  EXPECT_EQ(integer::read_model(path("model.miniqat")).weight_bytes(), 9 * 4 + 64 * 10);
  const Arguments of_file = {"eval",       "--model", "model.miniqat", "--dataset", "mnist",
                             "--data-dir", "digits",  "--threads",     "1",         "--json"};
  const Outcome file = program(of_file), run = program({"eval", "--run", "run", "--integer", "--json"});
  expect_success(file);
  EXPECT_EQ(Json::parse(file.out)["correct"], Json::parse(run.out)["correct"]);
  expect_error(program({"eval", "--model", "model.miniqat"}), 2, {"--dataset"});
  expect_error(program({"eval", "--model", "model.miniqat", "--run", "run"}), 2, {"one of --run and --model"});
  for (const char* name : {"m.tflite", "m.onnx", "m.c", "m.json"}) {
    const Outcome outcome = export_as(fs::path(name).extension().string().substr(1), name);
    expect_success(outcome);
    EXPECT_NE(outcome.out.find(name), std::string::npos);
    EXPECT_GT(size(name), 500);
  }
  EXPECT_TRUE(fs::exists(path("m.h")));
  const Json json = Json::parse(bytes_of(path("m.json")));
  EXPECT_EQ(json["operations"].size(), 4);
}

TEST_F(IntegersOutTest, Int8PerChannelTakesSymmetricWeights) {
  train("run", {"--per-channel"});
  expect_error(export_as("tflite", "m.tflite"), 1, {"conv1/Conv2D", "--symmetric-weights"});
  for (const std::string flag : {"--symmetric-weights", "--symmetric"}) {
    fs::remove_all(path("run"));
    train("run", {"--per-channel", flag});
    expect_success(export_as("tflite", "m.tflite"));
    expect_success(export_as("miniqat", "m.miniqat"));
    const integer::Model model = integer::read_model(path("m.miniqat"));
    for (const integer::Operation& operation : model.operations)
      if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) {
        EXPECT_TRUE(layer->per_channel()) << operation.name;
        for (const std::int32_t zero_point : layer->weight_zero_points) EXPECT_EQ(zero_point, 128) << operation.name;
      }
    EXPECT_EQ(model.output_of(model.operations.front()).grid.zero_point == 0, flag == "--symmetric-weights")
        << "all of the grid is for what a Relu lets through";
  }
}

TEST_F(IntegersOutTest, ARunKeepsItsSymmetricWeights) {
  train("run", {"--symmetric-weights"});
  EXPECT_EQ(Json::parse(bytes_of(path("run/summary.json")))["quantization"], "W8A8 symmetric weights");
  expect_success(program({"train", "--config", "run/config.json", "--out", "again"}));
  EXPECT_EQ(bytes_of(path("again/eval_graph.json")), bytes_of(path("run/eval_graph.json")));
  EXPECT_EQ(bytes_of(path("again/checkpoint.safetensors")), bytes_of(path("run/checkpoint.safetensors")));
}

TEST_F(IntegersOutTest, FewerBitsMakeSmallerFiles) {
  std::map<int, std::int64_t> weights;
  for (const int bits : {8, 4, 2}) {
    fs::remove_all(path("run"));
    train("run", {"--weight-bits", std::to_string(bits)});
    expect_success(export_as("miniqat", "model.miniqat"));
    weights[bits] = integer::read_model(path("model.miniqat")).weight_bytes();
  }
  EXPECT_EQ(weights[4] * 2, weights[8]);
  EXPECT_EQ(weights[2] * 4, weights[8]);
}

TEST_F(IntegersOutTest, WhatCannotBeExportedLeavesNoFile) {
  train("run", {"--activation-bits", "4"});
  const Outcome outcome = export_as("tflite", "m.tflite");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_FALSE(fs::exists(path("m.tflite")));
  EXPECT_NE(outcome.err.find("8 bits"), std::string::npos) << outcome.err;
  EXPECT_EQ(export_as("c", "no/such/place/m.c").status, 1);
  EXPECT_EQ(export_as("c", "m.txt").status, 2);
  EXPECT_EQ(export_as("onnx", "m.onnx", {"--float-io"}).status, 2);
  EXPECT_EQ(export_as("c", "1-st.c", {"--prefix", "int"}).status, 2);
  EXPECT_EQ(export_as("pdf", "m.pdf").status, 2);
}

TEST_F(IntegersOutTest, AFloatRunHasNoIntegers) {
  train("run", {"--float"});
  for (const Outcome& outcome : {verify(), export_as("json", "m.json")}) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("calibrate"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace miniqat::testing
