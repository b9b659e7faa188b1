// What a folded layer costs in each phase, and that it computes there what the full formula does.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/engine/plan/plan.h"
#include "layers/batch_norm.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/fold/folding_outcome.h"

namespace miniqat::quantize::fold_phases_test {
namespace {

using testing::element;
using testing::expect_same;
using testing::FoldingCase;
using testing::FoldingNet;
using testing::Outcome;
using Layer = FoldingCase::Layer;

constexpr SessionOptions kFast = {};
constexpr SessionOptions kReference = {.backend = Backend::kReference};
constexpr SessionOptions kDouble = {.backend = Backend::kReference, .precision = DType::kFloat64};

/// Quantization and freezing, in either order.
constexpr std::int64_t kFirst = 10;
constexpr std::int64_t kSecond = 20;

class FoldPhases : public ::testing::TestWithParam<Layer> {
 protected:
  FoldingNet net(const RewriteOptions& options) const {
    FoldingNet net({.layer = GetParam()});
    const RewriteReport report = create_training_graph(net.graph, options);
    EXPECT_TRUE(report.batch_norms.at(0).folded) << report.batch_norms.at(0).text;
    return net;
  }
};

std::string layer_name(const ::testing::TestParamInfo<Layer>& info) { return FoldingCase{.layer = info.param}.name(); }

INSTANTIATE_TEST_SUITE_P(Layers, FoldPhases,
                         ::testing::Values(Layer::kConv, Layer::kDepthwise, Layer::kMatMul, Layer::kMatMulTransposed,
                                           Layer::kMatMulReshaped, Layer::kAtrous),
                         layer_name);

/// How often layers run in one step.
struct Runs {
  std::ptrdiff_t forward = 0;
  std::ptrdiff_t backward = 0;
  friend bool operator==(const Runs&, const Runs&) = default;
};

void PrintTo(const Runs& runs, std::ostream* stream) { *stream << runs.forward << '/' << runs.backward; }

std::unique_ptr<Plan> plan_of(const FoldingNet& net, bool training, std::int64_t step,
                              Backend backend = Backend::kFast) {
  return compile_plan(net.graph, {.fetches = net.graph.outputs(),
                                  .gradients_of = net.loss,
                                  .gradient_targets = testing::gradient_targets(net.graph),
                                  .training = training,
                                  .quantization_step = step,
                                  .backend = backend});
}

Runs layer_runs(const FoldingNet& net, bool training, std::int64_t step, Backend backend = Backend::kFast) {
  const auto plan = plan_of(net, training, step, backend);
  const auto is_layer_step = [](const auto& step) { return is_layer(*step.node); };
  return {std::ranges::count_if(plan->forward, is_layer_step), std::ranges::count_if(plan->backward, is_layer_step)};
}

TEST_P(FoldPhases, OneLayerRunsButWhileQuantizingBeforeTheFreeze) {
  const FoldingNet corrected = net({.quant_delay = kFirst, .freeze_bn_delay = kSecond});
  EXPECT_EQ(layer_runs(corrected, true, kFirst - 1), (Runs{1, 1})) << "quantizers are off";
  EXPECT_EQ(layer_runs(corrected, true, kFirst), (Runs{2, 2})) << "quantizing";
  EXPECT_EQ(layer_runs(corrected, true, kSecond - 1), (Runs{2, 2})) << "quantizing";
  EXPECT_EQ(layer_runs(corrected, true, kSecond), (Runs{1, 1})) << "frozen";
  for (const std::int64_t step : {kFirst - 1, kFirst, kSecond})
    EXPECT_EQ(layer_runs(corrected, false, step), (Runs{1, 1})) << "evaluation in step " << step;
  EXPECT_EQ(layer_runs(corrected, true, kFirst, Backend::kReference), (Runs{2, 2})) << "the reference cuts nothing";
  EXPECT_EQ(layer_runs(corrected, true, kSecond, Backend::kReference), (Runs{2, 2})) << "the reference cuts nothing";
}

TEST_P(FoldPhases, FrozenBeforeQuantizingOneLayerRunsThroughout) {
  const FoldingNet corrected = net({.quant_delay = kSecond, .freeze_bn_delay = kFirst});
  for (const std::int64_t step : {kFirst - 1, kFirst, kSecond})
    EXPECT_EQ(layer_runs(corrected, true, step), (Runs{1, 1})) << "step " << step;
}

TEST_P(FoldPhases, OtherModesRunOneLayerThroughout) {
  for (const BnFold mode : {BnFold::kSingle, BnFold::kLate}) {
    const FoldingNet folded =
        net({.per_channel = true, .quant_delay = kFirst, .freeze_bn_delay = kSecond, .bn_fold = mode});
    for (const bool training : {true, false})
      for (const std::int64_t step : {kFirst - 1, kFirst, kSecond})
        for (const Backend backend : {Backend::kFast, Backend::kReference})
          EXPECT_EQ(layer_runs(folded, training, step, backend), (Runs{1, 1})) << "step " << step;
  }
}

TEST_P(FoldPhases, WhatIsSparedStillObservesAndKeepsStatistics) {
  for (const BnFold mode : {BnFold::kTf, BnFold::kSingle, BnFold::kLate}) {
    FoldingNet folded = net({.per_channel = mode == BnFold::kLate, .quant_delay = kFirst, .bn_fold = mode});
    const Outcome before = testing::run(folded, kFast, false);
    const Outcome after = testing::run(folded, kFast, true);
    for (const char* name : {"weights_quant/min", "weights_quant/max", "act_quant/max", "act_quant/num_updates",
                             "BatchNorm/moving_mean", "BatchNorm/moving_variance"}) {
      const std::string variable = std::string("net/block/") + name;
      EXPECT_NE(element(after.variables.at(variable), 0), element(before.variables.at(variable), 0)) << variable;
    }
  }
}

/// Each phase on the fast backend, which takes shortcuts, against the reference, which computes every node.
void expect_phases_agree(FoldingNet net) {
  for (const bool training : {true, false})
    for (const std::int64_t step : {kFirst - 1, kFirst, kSecond}) {
      SCOPED_TRACE(concat(training ? "training" : "evaluation", " after ", step, " steps"));
      const std::int64_t before = training ? step - 1 : step;
      expect_same(testing::run(net, kFast, training, before), testing::run(net, kReference, training, before), 1e-4);
    }
}

TEST_P(FoldPhases, EveryPhaseComputesTheFullFormula) {
  for (const int bits : {8, 16})
    for (const BnFold mode : {BnFold::kTf, BnFold::kSingle, BnFold::kLate})
      for (const bool freeze_first : {false, true}) {
        SCOPED_TRACE(
            concat(bits, " bits, ", names_of(mode)[static_cast<int>(mode)], freeze_first ? ", freeze first" : ""));
        expect_phases_agree(net({.weight_bits = bits,
                                 .activation_bits = bits,
                                 .per_channel = mode == BnFold::kLate,
                                 .quant_delay = freeze_first ? kSecond : kFirst,
                                 .freeze_bn_delay = freeze_first ? kFirst : kSecond,
                                 .bn_fold = mode}));
      }
}

/// tf.contrib.quantize's own arrangement: once frozen, the correction still gets the batch's statistics, and its offset
/// is not zero.
FoldingNet frozen_on_batch_statistics(Layer layer) {
  FoldingNet net({.layer = layer});
  fold_batch_norms(net.graph, {.freeze_bn_delay = 0}, true);
  Node& norm = net.graph.at("net/block/BatchNorm");
  layers::BatchNormAttributes attributes = *norm.as<layers::BatchNorm>();
  attributes.freeze_delay = -1;
  net.graph.replace_op(norm, layers::BatchNorm::make(attributes));
  return net;
}

/// Why BatchNorm may hand out the moving statistics once frozen, and spare the layer that finds the batch's: these
/// cancel, in value and gradient.
TEST_P(FoldPhases, OnceFrozenTheBatchStatisticsCancel) {
  FoldingNet literal = frozen_on_batch_statistics(GetParam());
  Session session(literal.graph, kDouble);
  testing::number_variables(literal.graph, session);
  const Output offset = literal.graph.at("net/block/batch_norm_correction").output(2);
  const Tensor value =
      session.run({.fetches = {offset}, .training = true}, testing::numbered_feeds(literal.graph)).fetched[0];
  for (std::int64_t c = 0; c < value.elements(); ++c) EXPECT_GT(std::abs(element(value, c)), 1e-3);

  FoldingNet moving({.layer = GetParam(), .freeze_delay = 0});
  for (const SessionOptions& options : {kDouble, kReference, kFast}) {
    const Outcome expected = testing::run(moving, options, true);
    Outcome outcome = testing::run(literal, options, true);
    // Its batch norm does not know that it is frozen.
    for (const char* name : {"net/block/BatchNorm/moving_mean", "net/block/BatchNorm/moving_variance"})
      outcome.variables[name] = expected.variables.at(name);
    expect_same(outcome, expected, options.precision == DType::kFloat64 ? 1e-9 : 1e-4);
  }
}

TEST(FoldedLayer, TakesNoShortcutWhereItsPartsDisagree) {
  FoldingNet net({});
  fold_batch_norms(net.graph, {.freeze_bn_delay = 0}, true);
  EXPECT_TRUE(find_folded_layer(net.graph.at("net/block/batch_norm_correction")).has_value());
  const FoldingNet literal = frozen_on_batch_statistics(Layer::kConv);
  EXPECT_FALSE(find_folded_layer(literal.graph.at("net/block/batch_norm_correction")).has_value());
  EXPECT_EQ(layer_runs(literal, true, 0), (Runs{2, 2}));
  Node& norm = net.graph.at("net/block/BatchNorm");
  layers::BatchNormAttributes attributes = *norm.as<layers::BatchNorm>();
  attributes.epsilon *= 2;
  net.graph.replace_op(norm, layers::BatchNorm::make(attributes));
  EXPECT_FALSE(find_folded_layer(net.graph.at("net/block/batch_norm_correction")).has_value());
}

TEST(FoldedLayer, HasWeightsThatABatchNormScales) {
  for (const Layer layer : {Layer::kConv, Layer::kDepthwise, Layer::kMatMul, Layer::kMatMulTransposed})
    for (const BnFold fold : {BnFold::kTf, BnFold::kSingle, BnFold::kLate}) {
      FoldingNet net({.layer = layer, .bypass = FoldingCase::Bypass::kAfterActivation});
      fold_batch_norms(net.graph, {.bn_fold = fold}, true);
      using Found = std::map<std::string, const Node*>;
      Found found;
      for (const Node* node : net.graph.nodes())
        if (const Output variance = scaling_variance(node->output()); variance.node != nullptr)
          found[node->name()] = variance.node;
      const Found expected = {{"net/block/mul_fold", net.graph.at("net/block/BatchNorm").input(4).node}};
      EXPECT_EQ(found, fold == BnFold::kLate ? Found{} : expected) << static_cast<int>(layer);
    }
}

/// The step in which a node runs, alone or fused with others; null when it does not.
const Plan::ForwardStep* find_step(const Plan& plan, const Node& node) {
  const auto found = std::ranges::find_if(plan.forward, [&](const Plan::ForwardStep& step) {
    return std::ranges::find(step.members, &node) != step.members.end();
  });
  return found == plan.forward.end() ? nullptr : &*found;
}

const Plan::ForwardStep& step_of(const Plan& plan, const Node& node) { return *find_step(plan, node); }

TEST(FoldPhasesMemory, WhoGivesStatisticsOnlyDoesNotNormalise) {
  FoldingNet net({});
  create_training_graph(net.graph, {.quant_delay = kFirst, .freeze_bn_delay = kSecond});
  const Node& norm = net.graph.at("net/block/BatchNorm");
  EXPECT_EQ(step_of(*plan_of(net, true, kFirst), norm).context.outputs[0], nullptr);
  EXPECT_NE(step_of(*plan_of(net, true, kFirst - 1), norm).context.outputs[0], nullptr) << "it is the layer's output";
  EXPECT_NE(step_of(*plan_of(net, true, kFirst, Backend::kReference), norm).context.outputs[0], nullptr);
}

TEST(FoldPhasesMemory, OnceFrozenNothingIsCorrected) {
  FoldingNet net({});
  create_training_graph(net.graph, {.quant_delay = kFirst, .freeze_bn_delay = kSecond});
  const auto runs = [&](std::int64_t step, const std::string& name) {
    const auto plan = plan_of(net, true, step);
    return find_step(*plan, net.graph.at("net/block/" + name)) != nullptr;
  };
  for (const char* name : {"BatchNorm", "post_conv_mul"}) {
    EXPECT_TRUE(runs(kFirst, name)) << name;
    EXPECT_FALSE(runs(kSecond, name)) << name;
  }
  for (const std::int64_t step : {kFirst - 1, kFirst, kSecond})
    EXPECT_FALSE(runs(step, "correction_add")) << "it adds zeros, step " << step;
}

TEST(FoldPhasesMemory, StatisticsOfABatchTakeNoMemoryForY) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {32, 8, 8, 4});
  const auto vector = [&](const char* name, bool trainable) {
    return layers::variable(graph, name, {4}, Initializer::constant(1), trainable);
  };
  // An op in between: the statistics are of a tensor that the plan itself must hold.
  const Output moved = layers::add(graph, "moved", x, vector("by", true));
  const Node& norm = *layers::batch_norm(graph, "norm", moved, vector("gamma", true), vector("beta", true),
                                         vector("mean", false), vector("variance", false))
                          .node;
  const auto all = compile_plan(graph, {.fetches = {norm.output(0), norm.output(1), norm.output(2)}, .training = true});
  const auto some = compile_plan(graph, {.fetches = {norm.output(1), norm.output(2)}, .training = true});
  EXPECT_NE(step_of(*all, norm).context.outputs[0], nullptr);
  EXPECT_EQ(step_of(*some, norm).context.outputs[0], nullptr);
  EXPECT_EQ(all->memory.unshared - some->memory.unshared, x.spec().bytes());

  const Feeds feeds = {{x, testing::numbers("x", x.shape())}};
  const RunRequest request{
      .fetches = {norm.output(1)}, .gradients_of = norm.output(2), .gradient_targets = {x}, .training = true};
  Session fast(graph);
  Session reference(graph, kReference);
  const RunResult got = fast.run(request, feeds);
  const RunResult wanted = reference.run(request, feeds);
  testing::expect_close(got.fetched[0], wanted.fetched[0], 1e-5, "mean");
  testing::expect_close(got.gradients[0], wanted.gradients[0], 1e-5, "gradient of the variance");
}

}  // namespace
}  // namespace miniqat::quantize::fold_phases_test
