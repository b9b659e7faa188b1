// Where quantizers stand around a folded layer, what they are called, and which options reach them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/graph/op_queries.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/fold/folding_outcome.h"

namespace miniqat::quantize::fold_names_test {
namespace {

using testing::FoldingCase;
using testing::FoldingNet;
using Layer = FoldingCase::Layer;
using Activation = FoldingCase::Activation;
using Bypass = FoldingCase::Bypass;
using Names = std::vector<std::string>;

/// "quantizer <- tensor" for every quantizer that was inserted, but that of the loss.
Names quantizers(const Graph& graph, const RewriteReport& report) {
  Names names;
  for (const std::string& name : report.inserted)
    if (!name.starts_with("loss/")) names.push_back(name + " <- " + graph.at(name).input(0).name());
  return names;
}

/// How the graph is made, and the node that folding leaves as the layer's result.
struct Way {
  BnFold mode;
  bool evaluation;
  std::string result;
};

const std::vector<Way> kWays = {{BnFold::kTf, false, "net/block/add_fold"},
                                {BnFold::kSingle, false, "net/block/BatchNorm"},
                                {BnFold::kTf, true, "net/block/add_fold"}};

void expect_quantizers(const FoldingCase& c, const Way& way, const Names& expected) {
  FoldingNet net(c);
  const RewriteOptions options{.bn_fold = way.mode};
  const RewriteReport report =
      way.evaluation ? create_eval_graph(net.graph, options) : create_training_graph(net.graph, options);
  EXPECT_EQ(quantizers(net.graph, report), expected) << c.name() << way.result;
}

TEST(FoldNames, WeightsAndActivation) {
  for (const Way& way : kWays) {
    const std::string weights = "net/block/weights_quant <- net/block/mul_fold";
    expect_quantizers({.activation = Activation::kNone}, way, {weights, "net/block/act_quant <- " + way.result});
    expect_quantizers({.activation = Activation::kRelu}, way, {weights, "net/block/act_quant <- net/block/Relu"});
    expect_quantizers({.layer = Layer::kAtrous, .activation = Activation::kRelu6}, way,
                      {weights, "net/block/act_quant <- net/block/Relu6"});
  }
}

TEST(FoldNames, BypassBeforeTheActivation) {
  for (const Way& way : kWays) {
    const std::string weights = "net/block/weights_quant <- net/block/mul_fold";
    const std::string before = "net/block/conv_quant <- " + way.result;
    expect_quantizers({.activation = Activation::kNone, .bypass = Bypass::kBeforeActivation}, way,
                      {weights, before, "net/add_quant <- net/Add"});
    expect_quantizers({.layer = Layer::kDepthwise, .bypass = Bypass::kBeforeActivation}, way,
                      {weights, before, "net/act_quant <- net/block/Relu"});
  }
}

TEST(FoldNames, BypassAfterTheActivation) {
  for (const Way& way : kWays)
    expect_quantizers({.bypass = Bypass::kAfterActivation}, way,
                      {"net/block/weights_quant <- net/block/mul_fold", "net/block/act_quant <- net/block/Relu",
                       "net/post_activation_bypass_quant <- net/AddAfter"});
}

TEST(FoldNames, NodesThatFoldingMakes) {
  FoldingNet net({.layer = Layer::kAtrous});
  const Graph before = net.graph.clone();
  fold_batch_norms(net.graph, {}, true);
  Names added;
  for (const Node* node : net.graph.nodes())
    if (!before.find(node->name())) added.push_back(node->name());
  EXPECT_EQ(added, (Names{"net/block/BatchNorm_Fold", "net/block/batch_norm_correction", "net/block/correction_mult",
                          "net/block/mul_fold", "net/block/Conv2D_Fold", "net/block/BatchToSpaceND_Fold",
                          "net/block/post_conv_mul", "net/block/correction_add", "net/block/add_fold"}));
}

class FoldRanges : public ::testing::TestWithParam<BnFold> {};
INSTANTIATE_TEST_SUITE_P(Modes, FoldRanges, ::testing::Values(BnFold::kTf, BnFold::kSingle),
                         [](const auto& info) { return info.param == BnFold::kTf ? "Corrected" : "Single"; });

TEST_P(FoldRanges, PerChannelShapes) {
  const std::vector<std::pair<Layer, Shape>> shapes = {
      {Layer::kConv, {5}},   {Layer::kAtrous, {5}},         {Layer::kDepthwise, {4, 2}},
      {Layer::kMatMul, {3}}, {Layer::kMatMulReshaped, {3}}, {Layer::kMatMulTransposed, Shape{}}};
  for (const auto& [layer, shape] : shapes) {
    FoldingNet net({.layer = layer});
    create_training_graph(net.graph, {.symmetric = true, .per_channel = true, .bn_fold = GetParam()});
    EXPECT_EQ(net.graph.output_at("net/block/weights_quant/min").shape(), shape);
    EXPECT_EQ(net.graph.output_at("net/block/act_quant/min").shape(), Shape{});
    for (const char* name : {"net/block/weights_quant", "net/block/act_quant"})
      EXPECT_TRUE(net.graph.at(name).as<FakeQuant>()->symmetric) << name;
  }
}

/// The largest magnitude in each of the channels, which are the last axes.
std::vector<double> magnitudes(const Tensor& tensor, std::int64_t channels) {
  std::vector<double> largest(channels);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    double& channel = largest[i % channels];
    channel = std::max(channel, std::abs(testing::element(tensor, i)));
  }
  return largest;
}

TEST_P(FoldRanges, SymmetricRangesPerChannelAreThoseOfTheFoldedWeights) {
  for (const Layer layer : {Layer::kConv, Layer::kDepthwise, Layer::kMatMul}) {
    FoldingNet net({.layer = layer});
    create_training_graph(net.graph, {.symmetric = true, .per_channel = true, .bn_fold = GetParam()});
    const Output folded = net.graph.output_at("net/block/mul_fold");
    Session session(net.graph);
    testing::number_variables(net.graph, session);
    const Tensor weights =
        session.run({.fetches = {folded, net.graph.outputs()[0]}, .training = true}, testing::numbered_feeds(net.graph))
            .fetched[0];
    const Tensor min = session.variable("net/block/weights_quant/min");
    const Tensor max = session.variable("net/block/weights_quant/max");
    const std::vector<double> expected = magnitudes(weights, max.elements());
    for (std::int64_t c = 0; c < max.elements(); ++c) {
      EXPECT_FLOAT_EQ(max.data<float>()[c], static_cast<float>(expected[c])) << c;
      EXPECT_EQ(min.data<float>()[c], -max.data<float>()[c]) << c;
    }
  }
}

TEST_P(FoldRanges, OfTheFoldedWeightsAreTheMovingStatisticsOnes) {
  FoldingNet net({});
  create_training_graph(net.graph, {.quant_delay = 5, .bn_fold = GetParam()});
  FoldingNet evaluation({});
  create_eval_graph(evaluation.graph);
  const auto folded_weights = [](FoldingNet& of, bool training) {
    Session session(of.graph);
    testing::number_variables(of.graph, session);
    return session
        .run({.fetches = {of.graph.output_at("net/block/mul_fold")}, .training = training},
             testing::numbered_feeds(of.graph))
        .fetched[0];
  };
  testing::expect_close(folded_weights(net, true), folded_weights(evaluation, false), 1e-5, "mul_fold");
}

TEST(FoldFreeze, BeforeTheDelayIsAWarning) {
  const auto warnings = [](std::int64_t delay, std::optional<std::int64_t> freeze) {
    FoldingNet net({});
    return create_training_graph(net.graph, {.quant_delay = delay, .freeze_bn_delay = freeze});
  };
  const RewriteReport early = warnings(20, 10);
  ASSERT_EQ(early.warnings.size(), 1u);
  EXPECT_EQ(early.warnings[0],
            "batch norm freezes at step 10, before quantization begins at step 20: its statistics will be those of the "
            "float network, and never follow the quantized one");
  EXPECT_NE(early.text().find("warning: " + early.warnings[0]), std::string::npos);
  EXPECT_TRUE(warnings(20, 20).warnings.empty());
  EXPECT_TRUE(warnings(20, 30).warnings.empty());
  EXPECT_TRUE(warnings(20, {}).warnings.empty());
}

TEST(FoldFreeze, ADelayOfItsOwnStays) {
  for (const BnFold mode : {BnFold::kTf, BnFold::kSingle})
    for (const std::optional<std::int64_t> asked : {std::optional<std::int64_t>(), std::optional<std::int64_t>(7)}) {
      FoldingNet net({.freeze_delay = 3});
      fold_batch_norms(net.graph, {.freeze_bn_delay = asked, .bn_fold = mode}, true);
      EXPECT_EQ(freeze_delay_of(net.graph.at("net/block/BatchNorm")), 3);
      const Node* correction = net.graph.find("net/block/batch_norm_correction");
      EXPECT_EQ(correction != nullptr, mode == BnFold::kTf);
      EXPECT_TRUE(correction == nullptr || freeze_delay_of(*correction) == 3);
    }
}

TEST(FoldFreeze, ReachesBatchNormsThatAreNotFolded) {
  FoldingNet net({});
  const Output x = net.graph.at("net/block/Conv2D").output();
  net.graph.set_outputs({net.graph.outputs()[0], x});
  fold_batch_norms(net.graph, {.freeze_bn_delay = 7}, true);
  EXPECT_EQ(net.graph.find("net/block/mul_fold"), nullptr);
  EXPECT_EQ(freeze_delay_of(net.graph.at("net/block/BatchNorm")), 7);
}

}  // namespace
}  // namespace miniqat::quantize::fold_names_test
