// A network with pre-activation residual blocks, whose batch norms are part of no layer, by the commands: training,
// resuming, calibration, re-estimation, the integers and their exports.

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::batch_norm_alone_test {
namespace {

using Json = nlohmann::json;

/// conv, block of norm, Relu and conv twice beside a bypass, norm, Relu, pool, norm, dense.
Graph preactivated() {
  Graph graph;
  const auto conv = [&](const std::string& scope, Output x) {
    const Output w = layers::variable(graph, scope + "/weights", {3, 3, x.shape()[3], 4}, Initializer::he_normal());
    return layers::conv2d(graph, scope + "/Conv2D", x, w);
  };
  const auto norm = [&](const std::string& scope, Output x) {
    const Shape channels{x.shape().channels()};
    const auto vector = [&](const std::string& name, double value, bool trainable) {
      return layers::variable(graph, scope + name, channels, Initializer::constant(value), trainable);
    };
    return layers::batch_norm(graph, scope + "/BatchNorm", x, vector("/gamma", 1, true), vector("/beta", 0, true),
                              vector("/moving_mean", 0, false), vector("/moving_variance", 1, false), {.decay = 0.9});
  };
  const auto norm_relu = [&](const std::string& scope, Output x) {
    return layers::relu(graph, scope + "/Relu", norm(scope, x));
  };
  const Output stem = conv("stem", layers::placeholder(graph, "images", {4, 8, 8, 1}));
  const Output inside = conv("block/a", norm_relu("block/first", stem));
  const Output sum = layers::add(graph, "block/Add", stem, conv("block/b", norm_relu("block/a", inside)));
  Output x = layers::max_pool(graph, "pool", norm_relu("last", sum), {});
  x = layers::reshape(graph, "flatten", norm("pooled", x), {.shape = {-1, 64}});
  const Output w = layers::variable(graph, "fc/weights", {64, 10}, Initializer::he_normal());
  graph.set_outputs({layers::matmul(graph, "fc/MatMul", x, w)});
  return graph;
}

class BatchNormAloneTest : public TinyTaskTest {
 protected:
  BatchNormAloneTest() {
    layers::register_ops();
    place_.write("preact.json", graph_to_json(preactivated()));
  }

  Outcome train_it(const std::string& out, const Arguments& more) const {
    return train(out, "--model preact.json --schedule constant" + more);
  }
  /// The weights are symmetric, as TensorFlow Lite takes them beside factors that differ between channels.
  void expect_integers(const std::string& run) const {
    expect_text(expect_success(program({"verify", "--run", run, "--no-runtimes", "--threads", "1"})).out,
                {"block/first/BatchNorm DepthwiseConv2d", "pooled/BatchNorm      DepthwiseConv2d"});
    for (const char* format : {"c", "html", "json", "miniqat", "onnx", "tflite"})
      expect_success(program({"export", "--run", run, "--format", format, "--out", run + "_exported." + format}));
  }
};

TEST_F(BatchNormAloneTest, TrainsResumesAndBecomesIntegers) {
  for (const std::string fold : {"tf", "single", "late"}) {
    SCOPED_TRACE(fold);
    const Arguments flags =
        "--per-channel --symmetric-weights --quant-delay 3 --freeze-bn-delay 9" + Arguments{"--bn-fold", fold};
    expect_success(train_it(fold + "_whole", flags));
    expect_success(train_it(fold, flags + "--stop-at 8"));
    expect_success(resume(fold));
    EXPECT_EQ(files_of(path(fold)), files_of(path(fold + "_whole")));
    expect_integers(fold);
  }
}

TEST_F(BatchNormAloneTest, IsCalibratedWithEverything) {
  expect_success(train_it("float", {"--float", "--steps", "40"}));
  const Outcome outcome = expect_success(program(
      "calibrate --run float --out calibrated --threads 1 --weight-bits 4 --per-channel --symmetric-weights --equalize "
      "--rounding adaptive --bias-correction"));
  EXPECT_EQ(outcome.out.find("will not become integers"), std::string::npos) << outcome.out;
  expect_integers("calibrated");
  expect_success(program("export --run float --format onnx-float --out float.onnx"));
}

TEST_F(BatchNormAloneTest, IsEstimatedAgain) {
  expect_success(train_it("run", {"--symmetric-weights"}));
  expect_text(expect_success(program("reestimate --run run --batches 3 --threads 1")).out,
              {"4 batch norms, 3 batches"});
  expect_integers("run");
}

TEST_F(BatchNormAloneTest, TheReportSaysWhereEachIsQuantized) {
  const Outcome outcome = expect_success(program("rewrite --graph preact.json --report --strict --out qat.json"));
  const std::string line = "; in evaluation a product and a sum for each channel, quantized ";
  expect_text(outcome.out,
              {"block/first/BatchNorm  not folded  [Conv2D \"stem/Conv2D\"] is read by [Add \"block/Add\"] as well" +
                   line + "after block/first/Relu\n",
               "block/a/BatchNorm      folded      into block/a/Conv2D_Fold\n" + std::string(),
               "last/BatchNorm         not folded  its input comes from [Add \"block/Add\"], not from a layer" + line +
                   "after last/Relu\n",
               "pooled/BatchNorm       not folded  its input comes from [MaxPool \"pool\"], not from a layer" + line +
                   "by pooled/BatchNorm/activation_BatchNorm_quant\n"});
}

}  // namespace
}  // namespace miniqat::testing::batch_norm_alone_test
