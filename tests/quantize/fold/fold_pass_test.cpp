// Folded against unfolded: the same function, the same gradients, the same moving statistics.
#include "quantize/fold/fold_pass.h"

#include <gtest/gtest.h>

#include "quantize/rewrite/rewrite.h"
#include "tests/fewer_cases.h"
#include "tests/quantize/fold/folding_outcome.h"

namespace miniqat::quantize::fold_pass_test {
namespace {

using testing::element;
using testing::expect_same;
using testing::FoldingCase;
using testing::FoldingNet;
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

}  // namespace
}  // namespace miniqat::quantize::fold_pass_test
