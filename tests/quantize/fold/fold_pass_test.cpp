// Folded against unfolded: the same function, the same gradients, the same moving statistics.
#include "quantize/fold/fold_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/graph/graph_json.h"
#include "core/graph/registry.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/fold/folding_outcome.h"
#include "tests/quantize/fold/folding_ways.h"

namespace miniqat::quantize::fold_pass_test {
namespace {

using testing::element;
using testing::expect_same;
using testing::FoldingCase;
using testing::FoldingNet;
using testing::FoldingWay;
using testing::Outcome;
using Layer = FoldingCase::Layer;
using Activation = FoldingCase::Activation;
using Bypass = FoldingCase::Bypass;

enum class Way { kDouble, kReferenceFloat, kFast };

double tolerance(Way way) { return way == Way::kDouble ? 1e-9 : 1e-4; }

SessionOptions session_options(Way way) {
  return {.backend = way == Way::kFast ? Backend::kFast : Backend::kReference,
          .precision = way == Way::kDouble ? DType::kFloat64 : DType::kFloat32};
}

Outcome run(FoldingNet& net, Way way, bool training, std::int64_t step = 0) {
  return testing::run(net, session_options(way), training, step);
}

std::vector<FoldingCase> grid() {
  std::vector<FoldingCase> cases;
  for (const Layer layer : {Layer::kConv, Layer::kDepthwise, Layer::kMatMul, Layer::kMatMulTransposed,
                            Layer::kMatMulReshaped, Layer::kAtrous})
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6})
      for (const Bypass bypass : {Bypass::kNone, Bypass::kBeforeActivation, Bypass::kAfterActivation})
        for (const bool scaling : {true, false})
          for (const bool identity : {false, true}) cases.push_back({layer, activation, bypass, scaling, identity});
  return testing::one_in(3, cases);
}

class FoldBatchNorms : public ::testing::TestWithParam<std::tuple<FoldingCase, BnFold>> {
 protected:
  FoldingCase net_case(std::int64_t freeze_delay = -1) const {
    FoldingCase c = std::get<0>(GetParam());
    c.freeze_delay = freeze_delay;
    return c;
  }
  RewriteOptions options() const { return {.bn_fold = std::get<1>(GetParam())}; }

  void expect_folded(const std::vector<BatchNormReport>& lines) const {
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(lines[0].folded) << lines[0].text;
  }
};

TEST_P(FoldBatchNorms, TrainsAsBefore) {
  for (const Way way : {Way::kDouble, Way::kReferenceFloat, Way::kFast}) {
    FoldingNet unfolded(net_case());
    FoldingNet folded(net_case());
    expect_folded(fold_batch_norms(folded.graph, options().folding(), true));
    folded.graph.verify();
    expect_same(run(folded, way, true), run(unfolded, way, true), tolerance(way));
  }
}

TEST_P(FoldBatchNorms, TrainsAsBeforeOnceFrozen) {
  RewriteOptions frozen = options();
  frozen.freeze_bn_delay = 3;
  for (const Way way : {Way::kDouble, Way::kReferenceFloat, Way::kFast})
    for (const std::int64_t step : {1, 2}) {
      FoldingNet unfolded(net_case(3));
      FoldingNet folded(net_case());
      expect_folded(fold_batch_norms(folded.graph, frozen.folding(), true));
      const Outcome outcome = run(folded, way, true, step);
      expect_same(outcome, run(unfolded, way, true, step), tolerance(way));
      const Tensor before = testing::numbers("net/block/BatchNorm/moving_mean",
                                             outcome.variables.at("net/block/BatchNorm/moving_mean").shape(), -1, 1);
      const double moved = element(outcome.variables.at("net/block/BatchNorm/moving_mean"), 0) - element(before, 0);
      EXPECT_EQ(moved == 0, step == 2);
    }
}

TEST_P(FoldBatchNorms, EvaluatesAsBefore) {
  for (const Way way : {Way::kDouble, Way::kReferenceFloat, Way::kFast}) {
    FoldingNet unfolded(net_case());
    const Outcome expected = run(unfolded, way, false);
    FoldingNet training(net_case());
    fold_batch_norms(training.graph, options().folding(), true);
    expect_same(run(training, way, false), expected, tolerance(way));
    FoldingNet evaluation(net_case());
    expect_folded(fold_batch_norms(evaluation.graph, options().folding(), false));
    EXPECT_EQ(evaluation.graph.find("net/block/BatchNorm"), nullptr);
    expect_same(run(evaluation, way, false), expected, tolerance(way));
    unfold_corrections(training.graph);
    training.graph.verify();
    EXPECT_EQ(training.graph.size(), evaluation.graph.size());
    for (const Node* node : evaluation.graph.nodes()) {
      const Node& converted = training.graph.at(node->name());
      EXPECT_EQ(converted.type(), node->type());
      for (std::size_t i = 0; i < node->inputs().size(); ++i)
        EXPECT_EQ(converted.inputs()[i].name(), node->inputs()[i].name()) << node->name();
    }
  }
}

TEST_P(FoldBatchNorms, TwiceIsTheSameAsOnce) {
  FoldingNet net(net_case());
  fold_batch_norms(net.graph, options().folding(), true);
  const std::uint64_t revision = net.graph.revision();
  const std::vector<BatchNormReport> again = fold_batch_norms(net.graph, options().folding(), true);
  EXPECT_EQ(net.graph.revision(), revision);
  expect_folded(again);
  EXPECT_TRUE(again[0].text.starts_with("already, into net/block/")) << again[0].text;
}

INSTANTIATE_TEST_SUITE_P(Grid, FoldBatchNorms,
                         ::testing::Combine(::testing::ValuesIn(grid()),
                                            ::testing::Values(BnFold::kTf, BnFold::kSingle)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name() +
                                  (std::get<1>(info.param) == BnFold::kTf ? "Corrected" : "Single");
                         });

// Folding and quantizers together: the evaluation graph made from a training graph is the one made directly.

constexpr SessionOptions kDouble = {.backend = Backend::kReference, .precision = DType::kFloat64};

/// One of each kind with the plainest others, and the combinations that differ in where quantizers go.
std::vector<FoldingCase> cases() {
  std::vector<FoldingCase> cases;
  for (const bool spelled_out : {false, true}) {
    for (const Layer layer : {Layer::kConv, Layer::kDepthwise, Layer::kMatMul, Layer::kMatMulTransposed,
                              Layer::kMatMulReshaped, Layer::kAtrous})
      for (const bool identity : {false, true})
        cases.push_back({.layer = layer, .scaling = identity, .identity = identity, .spelled_out = spelled_out});
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6})
      for (const Bypass bypass : {Bypass::kBeforeActivation, Bypass::kAfterActivation})
        cases.push_back({.activation = activation, .bypass = bypass, .spelled_out = spelled_out});
  }
  return cases;
}

class FoldRewrite : public ::testing::TestWithParam<std::tuple<FoldingCase, FoldingWay>> {
 protected:
  FoldRewrite() {
    layers::register_ops();
    register_ops();
  }
  FoldingNet net() const { return FoldingNet(std::get<0>(GetParam())); }
  FoldingWay way() const { return std::get<1>(GetParam()); }
  RewriteOptions options() const {
    return {.weight_bits = 5,
            .activation_bits = 6,
            .per_channel = way().per_channel,
            .quant_delay = 2,
            .freeze_bn_delay = 3,
            .bn_fold = way().fold,
            .ema_decay = 0.9};
  }
};

INSTANTIATE_TEST_SUITE_P(Grid, FoldRewrite,
                         ::testing::Combine(::testing::ValuesIn(cases()), ::testing::ValuesIn(testing::folding_ways())),
                         [](const auto& info) {
                           return std::get<0>(info.param).name() + std::get<1>(info.param).name();
                         });

/// The graph's JSON, a node a line, in an order of its own.
std::vector<std::string> sorted_nodes(const Graph& graph) {
  std::vector<std::string> lines;
  std::istringstream text(graph_to_json(graph));
  for (std::string line; std::getline(text, line);) {
    while (line.ends_with(',') || line.ends_with(']')) line.pop_back();
    lines.push_back(line);
  }
  std::ranges::sort(lines);
  return lines;
}

TEST_P(FoldRewrite, EvaluationOfATrainedGraphIsThatOfTheOriginal) {
  FoldingNet trained = net();
  create_training_graph(trained.graph, options());
  create_eval_graph(trained.graph, options());
  FoldingNet direct = net();
  create_eval_graph(direct.graph, options());
  EXPECT_EQ(sorted_nodes(trained.graph), sorted_nodes(direct.graph));
  for (const Node* node : direct.graph.nodes()) {
    EXPECT_TRUE(node->type() != "BatchNorm" || way().fold == BnFold::kLate);
    EXPECT_NE(node->type(), "BatchNormCorrection");
    EXPECT_NE(node->type(), "BatchNormScale");
  }
}

/// What the evaluation graph computes with the values that the training graph has after a step.
TEST_P(FoldRewrite, EvaluationComputesWhatTheTrainingGraphDoes) {
  FoldingNet training = net();
  create_training_graph(training.graph, options());
  const Outcome stepped = testing::run(training, kDouble, true, 1);
  Session session(training.graph, kDouble);
  const auto evaluate = [&](Graph& graph, Session& on) {
    for (const auto& [name, value] : on.variables()) on.set_variable(name, stepped.variables.at(name));
    on.set_quantization_step(2);
    return on.run({.fetches = graph.outputs()}, testing::numbered_feeds(graph)).fetched[0];
  };
  const Tensor before = evaluate(training.graph, session);
  create_eval_graph(training.graph, options());
  const Tensor converted = evaluate(training.graph, session);
  FoldingNet direct = net();
  create_eval_graph(direct.graph, options());
  Session fresh(direct.graph, kDouble);
  const Tensor y = evaluate(direct.graph, fresh);
  testing::expect_close(converted, y, 1e-12, "converted in place");
  testing::expect_close(before, y, 1e-9, "an evaluation run of the training graph");
}

}  // namespace
}  // namespace miniqat::quantize::fold_pass_test
