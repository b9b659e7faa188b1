// Folding and quantizers together: the evaluation graph made from a training graph is the one made directly.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/graph/graph_json.h"
#include "core/graph/registry.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/fold/folding_outcome.h"
#include "tests/quantize/fold/folding_ways.h"

namespace miniqat::quantize::fold_rewrite_test {
namespace {

using testing::FoldingCase;
using testing::FoldingNet;
using testing::FoldingWay;
using testing::Outcome;
using Layer = FoldingCase::Layer;
using Activation = FoldingCase::Activation;
using Bypass = FoldingCase::Bypass;

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

TEST_P(FoldRewrite, TwiceIsTheSameAsOnce) {
  FoldingNet folded = net();
  create_training_graph(folded.graph, options());
  const std::string once = graph_to_json(folded.graph);
  EXPECT_TRUE(create_training_graph(folded.graph, options()).inserted.empty());
  EXPECT_EQ(graph_to_json(folded.graph), once);
  EXPECT_EQ(graph_to_json(graph_from_json(once, "round trip")), once);
  create_eval_graph(folded.graph, options());
  const std::string evaluation = graph_to_json(folded.graph);
  EXPECT_TRUE(create_eval_graph(folded.graph, options()).inserted.empty());
  EXPECT_EQ(graph_to_json(folded.graph), evaluation);
}

TEST_P(FoldRewrite, PassesStrict) {
  RewriteOptions strict = options();
  strict.strict = true;
  FoldingNet training = net();
  EXPECT_NO_THROW(create_training_graph(training.graph, strict));
  FoldingNet evaluation = net();
  EXPECT_NO_THROW(create_eval_graph(evaluation.graph, strict));
}

}  // namespace
}  // namespace miniqat::quantize::fold_rewrite_test
