// Networks of one spatial dimension, by the program from data of series to their runtimes: an imported ONNX file, and a
// built-in network.

#include <gtest/gtest.h>

#include <cmath>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/runtimes/judge.h"

namespace miniqat::testing::sequences_in_runtimes_test {
namespace {

using importers::import_test::NodeChain;
using importers::import_test::set_int;
using importers::import_test::set_ints;
using Json = nlohmann::json;

/// Two channels of 40 steps in the text format of the UCR and UEA archives: three frequencies.
std::string waves(int examples, int first) {
  std::string text = "@problemName waves\n@univariate false\n@classLabel true slow middle fast\n@data\n";
  for (int i = first; i < first + examples; ++i) {
    for (const double shift : {0.0, 1.5}) {
      for (int t = 0; t < 40; ++t)
        text += concat(t == 0 ? "" : ",", std::round(1e4 * (5 + shift + std::sin(t * 0.25 * (1 + i % 3) + i + shift) +
                                                            std::sin(i * 7.1 + t * 91.7) / 4)) /
                                              1e4);
      text += ":";
    }
    text += i % 3 == 0 ? "slow\n" : i % 3 == 1 ? "middle\n" : "fast\n";
  }
  return text;
}

/// Conv1d, batch norm, Relu, a depthwise Conv1d, a pool and a dense layer, as PyTorch writes them.
void add_network(NodeChain& net) {
  const auto weights = [&](const std::string& name, const std::vector<std::int64_t>& extents) {
    pb::Constant& constant = net.constant(name, extents);
    for (int i = 0; i < constant.float_data_size(); ++i)
      constant.set_float_data(i, 0.4f * std::sin(static_cast<float>(1.7 * i + 0.3 * i * i)));
  };
  weights("conv.weight", {8, 2, 5}), weights("deep.weight", {8, 1, 3}), weights("deep.bias", {8});
  weights("dense.weight", {3, 8 * 9}), weights("dense.bias", {3});
  for (const char* name : {"norm.weight", "norm.bias", "norm.mean", "norm.var"}) {
    pb::Constant& constant = net.constant(name, {8});
    for (int i = 0; i < 8; ++i)
      constant.set_float_data(i, std::string(name).ends_with("t") || std::string(name).ends_with("r") ? 1 : 0);
  }
  pb::Node& conv = net.add("Conv", {"conv.weight"});
  set_ints(conv, "strides", {2});
  set_ints(conv, "pads", {2, 2});
  net.add("BatchNormalization", {"norm.weight", "norm.bias", "norm.mean", "norm.var"});
  net.add("Relu");
  set_int(net.add("Conv", {"deep.weight", "deep.bias"}), "group", 8);
  net.add("Relu");
  set_ints(net.add("MaxPool"), "kernel_shape", {2});
  set_ints(*net.graph().mutable_node(net.graph().node_size() - 1), "strides", {2});
  net.add("Flatten");
  set_int(net.add("Gemm", {"dense.weight", "dense.bias"}), "transB", 1);
}

class SequencesInRuntimes : public ::testing::Test {
 protected:
  SequencesInRuntimes() {
    place_.write("waves_TRAIN.ts", waves(90, 0));
    place_.write("waves_TEST.ts", waves(30, 90));
  }

  std::string run(const std::string& line) const {
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome.out;
  }

  /// The run's integers are the runtimes'.
  void expect_agreement(const std::string& name) const {
    const Json report = Json::parse(run("verify " + name + " --json"));
    EXPECT_EQ(report["failed"], Json::array());
    EXPECT_EQ(report["left_out"], Json::array());
    ASSERT_EQ(report["runtimes"].size(), 2u);
    for (const Json& score : report["runtimes"]) {
      EXPECT_EQ(score["examples"], 30);
      EXPECT_GE(score["outputs"]["share"], 0.97) << score["name"];
      EXPECT_LE(score["outputs"]["largest_difference"], 1) << score["name"];
      EXPECT_EQ(score["top1_agreement_with_integer"], 1) << score["name"];
    }
  }

  TempDir place_;
};

TEST_F(SequencesInRuntimes, AnImportedNetworkIsTrainedOnSeries) {
  MINIQAT_NEED_RUNTIMES();
  // Open steps come from the data.
  for (const bool open : {false, true}) {
    NodeChain net({0, 2, open ? 0 : 40});
    add_network(net);
    net.write();
    std::filesystem::copy_file(net.path(), place_.path() / "net.onnx",
                               std::filesystem::copy_options::overwrite_existing);
    const std::string out = open ? "open" : "fixed";
    run(concat(
        "train --model net.onnx --dataset waves_TRAIN.ts --float --epochs 12 --batch-size 10 --threads 1 --out float_",
        out));
    run(concat("quantize --run float_", out, " --weight-bits 8 --activation-bits 8 --epochs 2 --out ", out));
    const Json integers = Json::parse(run(concat("eval ", out, " --integer --json")));
    EXPECT_GE(integers["accuracy"], 0.8) << "chance is a third";
  }
  expect_agreement("fixed");
  // At once, from the file's weights.
  run("quantize --model net.onnx --dataset waves_TRAIN.ts --batch-size 10 --threads 1 --epochs 2 --weight-bits 8 --activation-bits 8 --out at_once");
  expect_agreement("at_once");
}

TEST_F(SequencesInRuntimes, TheBuiltInNetworkOfSteps) {
  MINIQAT_NEED_RUNTIMES();
  run("train --model wake_word --width 0.125 --dataset waves_TRAIN.ts --epochs 6 --batch-size 10 --threads 1 --weight-bits 8 "
      "--activation-bits 8 --out wake");
  expect_agreement("wake");
}

/// A sequence of the float network goes through ONNX and comes back.
TEST_F(SequencesInRuntimes, AFloatExportIsImportedAgain) {
  run("train --model wake_word --width 0.125 --dataset waves_TRAIN.ts --float --epochs 1 --batch-size 10 --threads 1 --out float");
  run("export float --format onnx-float --out float.onnx");
  run("train --model float.onnx --dataset waves_TRAIN.ts --float --epochs 1 --batch-size 10 --threads 1 --out again");
}

}  // namespace
}  // namespace miniqat::testing::sequences_in_runtimes_test
