// Batch norms from the flags to the integers: --bn-fold late (what commands take and refuse, resuming, starts from
// other foldings), and pre-activation residual blocks, whose batch norms are part of no layer.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::batch_norms_test {
namespace {

using Json = nlohmann::json;

const Arguments kLate = "--bn-fold late --per-channel";
const Arguments kNorm = "--model norm.json --weight-bits 4 --schedule constant";

class LateFoldingTest : public TinyTaskTest {
 protected:
  Outcome train_norm(const std::string& out, const Arguments& more) const { return train(out, kNorm + more); }
  Json json_of_eval(const std::string& run, const Arguments& more = {}) const {
    return Json::parse(expect_success(program(Arguments{"eval", "--run", run, "--json", "--threads", "1"} + more)).out);
  }
};

TEST_F(LateFoldingTest, TrainsResumesAndBecomesIntegers) {
  const Arguments flags = kLate + "--ranges learned --reestimate 3";
  expect_resumes("run", kNorm + flags);
  EXPECT_EQ(json_of(path("run/config.json"))["bn_fold"], "late");
  EXPECT_EQ(json_of(path("run/summary.json"))["quantization"], "W4A8 per channel learned symmetric weights late");
  expect_text(expect_integers("run"), {"conv1/Conv2D"});
}

TEST_F(LateFoldingTest, TakesARangeForEachChannelAndScalesOfAnyKind) {
  expect_error(train_norm("run", {"--bn-fold", "late"}), 2, {"--bn-fold late needs --per-channel"});
  expect_error(train_norm("run", kLate + "--scales power-of-two"), 2, {"--bn-fold late", "--scales power-of-two"});
  place_.write("bits.json", R"({"conv1": {"per_channel": false}})");
  expect_error(train_norm("run", kLate + "--bits-config bits.json"), 1,
               {"[Conv2D \"conv1/Conv2D\"]", "bits_config", "folded late"});
  EXPECT_FALSE(std::filesystem::exists(path("run/config.json")));
  place_.write("bits.json", R"({"fc": {"per_channel": false}})");
  expect_success(train_norm("run", kLate + "--bits-config bits.json"));
}

TEST_F(LateFoldingTest, RewritesForEvaluationToo) {
  expect_success(program("rewrite --graph norm.json --out train.json" + kLate));
  expect_success(program("rewrite --graph norm.json --mode eval --out eval.json" + kLate));
  expect_success(program("rewrite --graph train.json --mode eval --out again.json" + kLate));
  EXPECT_EQ(bytes_of(path("again.json")), bytes_of(path("eval.json")));
  expect_text(bytes_of(path("eval.json")), {"\"folds_late\": true"});
  expect_error(program("rewrite --graph train.json --bn-fold single --per-channel --out x.json"), 2,
               {"--bn-fold", "folded as by \"late\", not \"single\""});
  expect_success(program("rewrite --graph norm.json --out tf.json --per-channel"));
  expect_error(program("rewrite --graph tf.json --mode eval --out x.json" + kLate), 2,
               {"--bn-fold", "folded as by \"tf\", not \"late\""});
}

/// Ranges of folded weights are not those of raw ones.
TEST_F(LateFoldingTest, FromAnotherFoldingRangesOfWeightsStartAnew) {
  const Arguments learned = "--ranges learned --per-channel";
  expect_success(train_norm("tf", learned));
  const auto starts_from = [&](const std::string& run, const std::string& out, const Arguments& flags) {
    const Outcome outcome =
        expect_success(train_norm(out, learned + flags + Arguments{"--init-checkpoint", run, "--steps", "1"}));
    const Json names = json_of(path(out) / "init_checkpoint.json");
    return names.contains("anew") ? names["anew"] : Json();
  };
  const Json of_weights = {"conv1/weights_quant/max", "conv1/weights_quant/min", "fc/weights_quant/max",
                           "fc/weights_quant/min"};
  EXPECT_EQ(starts_from("tf", "late", kLate), of_weights);
  EXPECT_EQ(starts_from("tf/checkpoint.safetensors", "of-file", kLate), of_weights);
  EXPECT_EQ(starts_from("late", "later", kLate), Json());
  EXPECT_EQ(starts_from("late", "single", {"--bn-fold", "single"}), of_weights);
  EXPECT_EQ(starts_from("tf", "second", {"--bn-fold", "single"}), Json());
}

TEST_F(LateFoldingTest, IsCalibratedWithEverything) {
  make_float_run(place_, "norm", "float");
  const auto calibrate = [&](const std::string& out, const Arguments& more) {
    return program("calibrate --run float --threads 1 --weight-bits 3 --activation-bits 8 --verbose" +
                   Arguments{"--out", out} + kLate + more);
  };
  expect_success(calibrate("plain", {}));
  expect_text(expect_success(calibrate("all", {"--equalize", "--rounding", "adaptive", "--bias-correction"})).out,
              {"corrected  conv1/Conv2D: 4 channels", "rounded    conv1/Conv2D: "});
  const auto tensors = [&](const std::string& run) {
    return read_safetensors(path(run) / "checkpoint.safetensors").tensors;
  };
  const auto differ = [&](const std::string& name) {
    const Tensor before = tensors("plain").at(name), after = tensors("all").at(name);
    return !std::ranges::equal(before.values<float>(), after.values<float>());
  };
  EXPECT_TRUE(differ("conv1/beta"));
  EXPECT_FALSE(differ("conv1/moving_mean"));
  EXPECT_GE(json_of_eval("all", {"--integer"})["accuracy"], 0.5);
}

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

const Arguments kModel = "--model preact.json --schedule constant";

class BatchNormAloneTest : public TinyTaskTest {
 protected:
  BatchNormAloneTest() {
    layers::register_ops();
    place_.write("preact.json", graph_to_json(preactivated()));
  }

  Outcome train_it(const std::string& out, const Arguments& more) const { return train(out, kModel + more); }
  /// The weights are symmetric, as TensorFlow Lite takes them beside factors that differ between channels.
  void expect_both_norms(const std::string& run) const {
    expect_text(expect_integers(run),
                {"block/first/BatchNorm DepthwiseConv2d", "pooled/BatchNorm      DepthwiseConv2d"});
  }
};

TEST_F(BatchNormAloneTest, TrainsResumesAndBecomesIntegers) {
  for (const std::string fold : {"tf", "single", "late"}) {
    SCOPED_TRACE(fold);
    const Arguments flags =
        "--per-channel --symmetric-weights --quant-delay 3 --freeze-bn-delay 9" + Arguments{"--bn-fold", fold};
    expect_resumes(fold, kModel + flags);
    expect_both_norms(fold);
  }
}

TEST_F(BatchNormAloneTest, IsCalibratedWithEverything) {
  expect_success(train_it("float", {"--float", "--steps", "40"}));
  const Outcome outcome = expect_success(program(
      "calibrate --run float --out calibrated --threads 1 --weight-bits 4 --per-channel --symmetric-weights --equalize "
      "--rounding adaptive --bias-correction"));
  EXPECT_EQ(outcome.out.find("will not become integers"), std::string::npos) << outcome.out;
  expect_both_norms("calibrated");
  expect_success(program("export --run float --format onnx-float --out float.onnx"));
}

TEST_F(BatchNormAloneTest, IsEstimatedAgain) {
  expect_success(train_it("run", {"--symmetric-weights"}));
  expect_text(expect_success(program("reestimate --run run --batches 3 --threads 1")).out,
              {"4 batch norms, 3 batches"});
  expect_both_norms("run");
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
}  // namespace miniqat::testing::batch_norms_test
