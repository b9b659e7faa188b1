// Batch norms folded late: what the rewrite leaves, what it refuses, and the gradients through quantized weights.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/graph_json.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/quantize.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/quantize/fold/folding_outcome.h"

namespace miniqat::quantize::late_folding_test {
namespace {

using testing::error_of;
using testing::FoldingCase;
using testing::FoldingNet;
using testing::mentions;

const RewriteOptions kLateOptions = {.per_channel = true, .bn_fold = BnFold::kLate};

/// "Type name: inputs" of all nodes but Variables.
std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node* node : graph.topological_order()) {
    if (node->inputs().empty()) continue;
    std::string line = concat(node->type(), " ", node->name(), ":");
    for (const Output& input : node->inputs()) line += " " + input.name();
    lines.push_back(line);
  }
  return lines;
}

bool trains(const Graph& graph) { return graph.at("net/block/BatchNorm").as<layers::BatchNorm>()->is_training; }

TEST(LateFolding, LeavesTheBatchNormBehindTheLayer) {
  const std::vector<std::string> expected = {
      "FakeQuant net/block/weights_quant: net/block/weights net/block/weights_quant/min net/block/weights_quant/max",
      "Conv2D net/block/Conv2D: images net/block/weights_quant",
      "BatchNorm net/block/BatchNorm: net/block/Conv2D net/block/BatchNorm/gamma net/block/BatchNorm/beta "
      "net/block/BatchNorm/moving_mean net/block/BatchNorm/moving_variance",
      "Identity net/block/update: net/block/BatchNorm",
      "Relu net/block/Relu: net/block/update",
      "FakeQuant net/block/act_quant: net/block/Relu net/block/act_quant/min net/block/act_quant/max",
      "Mul loss: net/block/act_quant weighting"};
  FoldingNet training({.identity = true}), evaluation({.identity = true});
  const RewriteReport report = create_training_graph(training.graph, kLateOptions);
  create_eval_graph(evaluation.graph, kLateOptions);
  EXPECT_EQ(ops_of(training.graph), expected);
  EXPECT_EQ(ops_of(evaluation.graph), expected);
  EXPECT_EQ(report.inserted.size(), 2u) << report.text();
  EXPECT_TRUE(trains(training.graph));
  EXPECT_FALSE(trains(evaluation.graph));
  EXPECT_TRUE(is_folded_late(training.graph.at("net/block/BatchNorm")));
  EXPECT_EQ(report.batch_norms.at(0).text, "into net/block/Conv2D");
  EXPECT_EQ(report.matches.at(0).text,
            "layer + BatchNorm + Identity + Relu: weights net/block/weights -> net/block/weights_quant, output "
            "net/block/Relu -> net/block/act_quant");
  EXPECT_TRUE(std::ranges::none_of(report.edges, [](const EdgeReport& edge) {
    return edge.status == EdgeStatus::kLeftFloat && edge.consumer.starts_with("net/");
  })) << report.text();
  EXPECT_EQ(quantization_of(training.graph).label(), "W8A8 per channel late");
  EXPECT_EQ(quantization_of(evaluation.graph).label(), "W8A8 per channel late");
}

TEST(LateFolding, AloneFreezesAndNamesTheLayerOnceMore) {
  FoldingNet net({});
  RewriteOptions options = kLateOptions;
  options.freeze_bn_delay = 7;
  create_training_graph(net.graph, options);
  EXPECT_EQ(net.graph.at("net/block/BatchNorm").as<layers::BatchNorm>()->freeze_delay, 7);
  const RewriteReport again = create_training_graph(net.graph, options);
  EXPECT_EQ(again.batch_norms.at(0).text, "already, into net/block/Conv2D");
  EXPECT_TRUE(again.conflicts.empty());
}

std::vector<std::string> conflicting(Graph& graph, const RewriteOptions& options, bool is_training) {
  std::vector<std::string> texts;
  const RewriteReport report = is_training ? create_training_graph(graph, options) : create_eval_graph(graph, options);
  for (const SettingConflict& conflict : report.conflicts)
    texts.push_back(concat(conflict.setting, ": ", conflict.text));
  return texts;
}

TEST(LateFolding, IsNoOtherFolding) {
  const RewriteOptions single = {.per_channel = true, .bn_fold = BnFold::kSingle};
  using Texts = std::vector<std::string>;
  for (const bool is_training : {true, false}) {
    FoldingNet late({}), other({});
    create_training_graph(late.graph, kLateOptions);
    create_training_graph(other.graph, single);
    EXPECT_EQ(conflicting(late.graph, single, is_training),
              Texts{"bn_fold: net/block/BatchNorm is folded as by \"late\", not \"single\""});
    EXPECT_EQ(conflicting(other.graph, kLateOptions, is_training),
              Texts{"bn_fold: net/block/BatchNorm is folded as by \"single\", not \"late\""});
  }
  FoldingNet evaluation({});
  create_eval_graph(evaluation.graph, kLateOptions);
  EXPECT_EQ(conflicting(evaluation.graph, single, false).size(), 1u);
}

TEST(LateFolding, RefusesWhatHasNoScaleForEachChannel) {
  layers::register_ops();
  register_ops();
  FoldingNet net({});
  EXPECT_TRUE(mentions(error_of([&] { create_training_graph(net.graph, {.bn_fold = BnFold::kLate}); }),
                       {"`bn_fold` late needs `per_channel`"}));
  RewriteOptions powers = kLateOptions;
  powers.scales = ScaleChoice::kPowerOfTwo;
  EXPECT_TRUE(mentions(error_of([&] { create_eval_graph(net.graph, powers); }),
                       {"`bn_fold` late", "`scales`", "powers of two"}));
  RewriteOptions bits = kLateOptions;
  bits.layer_bits = {{.pattern = "*Conv2D", .per_channel = false}};
  for (const auto rewrite : {create_training_graph, create_eval_graph}) {
    const std::string before = graph_to_json(net.graph);
    EXPECT_TRUE(mentions(error_of([&] { rewrite(net.graph, bits); }),
                         {"[Conv2D \"net/block/Conv2D\"]", "[BatchNorm \"net/block/BatchNorm\"]", "folded late"}));
    EXPECT_EQ(graph_to_json(net.graph), before);
  }
}

TEST(LateFolding, SaysThatThereIsNothingToFold) {
  Graph graph;
  const Output x = layers::placeholder(graph, "x", {2, 3});
  graph.set_outputs({layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {3, 4}))});
  const RewriteReport report = create_training_graph(graph, kLateOptions);
  EXPECT_EQ(std::ranges::count(report.remarks, "`bn_fold` late has no effect: there is no batch norm to fold"), 1);
}

/// A batch norm that only follows a layer with quantized weights is none of its parts.
TEST(LateFolding, OtherBatchNormsStayOutside) {
  FoldingNet net({});
  create_eval_graph(net.graph, kLateOptions);
  Node& norm = net.graph.at("net/block/BatchNorm");
  layers::BatchNormAttributes attributes = *norm.as<layers::BatchNorm>();
  attributes.folds_late = false;
  net.graph.replace_op(norm, layers::BatchNorm::make(attributes));
  const RewriteReport report = create_eval_graph(net.graph, kLateOptions);
  EXPECT_TRUE(report.matches.at(0).text.starts_with("layer: weights ")) << report.matches.at(0).text;
}

/// With the quantized weights as a variable of its own, the net has no quantizer of weights any more and all gradients
/// are those of its function.
TEST(LateFolding, GradientsAreThoseOfTheNetOnQuantizedWeights) {
  constexpr SessionOptions kDouble = {.backend = Backend::kReference, .precision = DType::kFloat64};
  for (const auto layer : {FoldingCase::Layer::kConv, FoldingCase::Layer::kDepthwise, FoldingCase::Layer::kMatMul}) {
    RewriteOptions options = kLateOptions;
    options.weight_bits = 3;
    options.ranges = RangeChoice::kLearned;
    FoldingNet late({.layer = layer}), plain({.layer = layer});
    for (FoldingNet* net : {&late, &plain}) create_training_graph(net->graph, options);
    Graph& graph = plain.graph;
    const Node& quantizer = graph.at("net/block/weights_quant");
    const Output rounded = layers::variable(graph, "rounded", quantizer.output().shape());
    graph.reroute(quantizer.output(), rounded);

    const auto run = [&](FoldingNet& net, const Tensor* weights) {
      Session session(net.graph, kDouble);
      testing::number_variables(net.graph, session);
      for (auto& [name, value] : session.variables()) {
        // Some weights lie outside.
        if (name == "net/block/weights_quant/min") std::ranges::fill(value.values<double>(), -0.7);
        if (name == "net/block/weights_quant/max") std::ranges::fill(value.values<double>(), 0.7);
      }
      if (weights != nullptr) session.set_variable("rounded", *weights);
      RunRequest request{.fetches = {net.graph.outputs()[0], net.graph.at("net/block/weights_quant").output()},
                         .gradients_of = net.loss,
                         .training = true};
      for (const char* name : {"net/block/BatchNorm/gamma", "net/block/BatchNorm/beta",
                               weights == nullptr ? "net/block/weights" : "rounded", "images"})
        request.gradient_targets.push_back(net.graph.at(name).output());
      return session.run(request, testing::numbered_feeds(net.graph));
    };
    const RunResult got = run(late, nullptr);
    RunResult wanted = run(plain, &got.fetched[1]);
    testing::expect_close(got.fetched[0], wanted.fetched[0], 1e-12, "y");
    const Tensor weights = testing::numbers("net/block/weights", quantizer.output().shape());
    Tensor& through = wanted.gradients[2];
    std::int64_t clipped = 0;
    for (std::int64_t i = 0; i < through.elements(); ++i)
      if (std::abs(weights.data<float>()[i]) > 0.7f) through.data<double>()[i] = 0, ++clipped;
    EXPECT_GT(clipped, 0);
    for (std::size_t k = 0; k < wanted.gradients.size(); ++k)
      testing::expect_close(got.gradients[k], wanted.gradients[k], 1e-12, concat("gradient ", k));
  }
}

}  // namespace
}  // namespace miniqat::quantize::late_folding_test
