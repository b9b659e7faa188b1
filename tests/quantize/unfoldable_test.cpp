// Batch norms that cannot be folded: reported with the reason, and left to compute what they did. In evaluation they
// are a product and a sum for each channel, which have a quantizer of their own where they read integers.
#include <gtest/gtest.h>

#include <algorithm>

#include "layers/batch_norm.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/quantize/fold/folding_outcome.h"
#include "tests/quantize/fold/primitive_batch_norm.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::unfoldable_test {
namespace {

using testing::error_of;
using testing::Outcome;
using testing::ToyGraph;

constexpr SessionOptions kDouble = {.backend = Backend::kReference, .precision = DType::kFloat64};

/// The channels are four for a moment, of which the first two stay, both from the layer's first.
void deal_out_channels(ToyGraph& toy) {
  const Output x = toy.conv("a", layers::placeholder(toy.graph, "images", {2, 4, 4, 2}));
  const Output y = layers::batch_to_space(toy.graph, "a/BatchToSpaceND", x,
                                          {.block_shape = {1, 1, 2}, .crops = {{0, 0}, {0, 0}, {0, 2}}});
  toy.graph.set_outputs({toy.batch_norm("a", y)});
}

/// It takes the moments of each batch in evaluation, too; as a BatchNorm it takes the moving ones.
void spell_out_in_primitive_ops(ToyGraph& toy) {
  testing::PrimitiveOps ops;
  ops.graph.set_outputs({ops.batch_norm(layers::relu(ops.graph, "Relu", ops.images()))});
  toy.graph = std::move(ops.graph);
}

struct UnfoldableCase {
  std::string name;
  /// ToyGraph's; the first output is what the graph is about.
  std::string chains;
  /// The batch norm, and a part of the line about it.
  std::string batch_norm;
  std::string reason;
  /// What --strict names; empty where all is quantized.
  std::string refused = "";
  std::string scope = "";
  /// Makes a graph that chains cannot say.
  void (*build)(ToyGraph&) = nullptr;
};

void PrintTo(const UnfoldableCase& c, std::ostream* stream) { *stream << c.name; }

const std::string kConvIsRead = "[Conv2D \"a/Conv2D\"] is read by ";
const std::string kWeightsOfA = "the weights of [Conv2D \"a/Conv2D\"] ", kNoVariable = ", not from a Variable";
const std::string kSharedStatistics = "images | conv a | batch_norm a | conv b | batch_norm b a | output";

// NOLINTNEXTLINE(readability-function-size): one table
const std::vector<UnfoldableCase>& all_cases() {
  static const std::vector<UnfoldableCase> all = {
      {"AnotherReader", "images | conv a | batch_norm a; a/Conv2D | Relu Relu | Add Add a/BatchNorm | output",
       "a/BatchNorm", kConvIsRead + "[Relu \"Relu\"] as well"},
      {"AnotherReaderOfACopy",
       "images | conv a | Identity copy | batch_norm a; copy | Relu Relu | Add Add a/BatchNorm | output", "a/BatchNorm",
       "[Identity \"copy\"] is read by [Relu \"Relu\"] as well"},
      {"TwoBatchNorms", "images | conv a | batch_norm a; a/Conv2D | batch_norm b | Add Add a/BatchNorm | output",
       "b/BatchNorm", kConvIsRead + "[BatchNorm \"a/BatchNorm\"] as well"},
      {"LayerIsAnOutput", "images | conv a | batch_norm a | output; a/Conv2D | output", "a/BatchNorm",
       kConvIsRead + "the graph's outputs as well"},
      {"Dangling", "images | conv a | batch_norm a; images | conv_relu b | output", "a/BatchNorm",
       "nobody reads its output"},
      {"MeanIsRead", "images | conv a | batch_norm a | Add Add a/BatchNorm:1 | output", "a/BatchNorm",
       "its statistics are read by [Add \"Add\"]", "a/BatchNorm:1 -> Add (a statistic of a batch norm)"},
      {"VarianceIsAnOutput", "images | conv a | batch_norm a | output; a/BatchNorm:2 | output", "a/BatchNorm",
       "its statistics are read by the graph's outputs"},
      {"SharedByTwoLayers", "images | conv a; images | conv b | Add c/Add a/Conv2D | batch_norm c | output",
       "c/BatchNorm", "its input comes from [Add \"c/Add\"], not from a layer"},
      {"SharedParameters", kSharedStatistics, "a/BatchNorm",
       "its moving statistics belong to [BatchNorm \"b/BatchNorm\"] as well"},
      {"SharedParametersTheOther", kSharedStatistics, "b/BatchNorm",
       "its moving statistics belong to [BatchNorm \"a/BatchNorm\"] as well"},
      {"AfterBiasAdd", "images | conv_bias a | batch_norm a | output", "a/BatchNorm",
       "a bias lies between it and its layer, [BiasAdd \"a/BiasAdd\"]; remove the bias"},
      {"AfterAddOfABias", "images | conv a; [2]a/bias | Add a/Add a/Conv2D | batch_norm a | output", "a/BatchNorm",
       "a bias lies between it and its layer, [Add \"a/Add\"]"},
      {"AfterABypass", "images | conv a | Add Add images | batch_norm a | output", "a/BatchNorm",
       "its input comes from [Add \"Add\"], not from a layer"},
      {"AfterAFactor", "images | conv a | Mul a/Mul [2]a/factor | batch_norm a | output", "a/BatchNorm",
       "its input comes from [Mul \"a/Mul\"], not from a layer"},
      {"AfterNoLayer", "images | Relu Relu | batch_norm a | conv b | output", "a/BatchNorm",
       "its input comes from [Relu \"Relu\"], not from a layer",
       "a/BatchNorm -> b/Conv2D (none of its inputs is quantized)"},
      {"AfterAPlaceholder", "images | batch_norm a | output", "a/BatchNorm",
       "its input comes from [Placeholder \"images\"], not from a layer"},
      // If both trained, nothing but noise would reach a's parameters.
      {"AfterABatchNorm", "images | conv a | batch_norm a | still_batch_norm b | output", "b/BatchNorm",
       "not from a layer"},
      {"ReshapeMovesChannels", "images | conv a | Reshape a/Reshape 1 4 2 4 | batch_norm a | output", "a/BatchNorm",
       "[Reshape \"a/Reshape\"] moves the channels"},
      {"BlocksOfChannels", "", "a/BatchNorm", "[BatchToSpaceND \"a/BatchToSpaceND\"] moves the channels", "", "",
       deal_out_channels},
      {"RearrangedTwice",
       "images | conv a | Reshape a/Reshape 16 2 | Identity a/copy | Reshape a/Reshape_1 4 4 2 | batch_norm a | output",
       "a/BatchNorm", "[Reshape \"a/Reshape\"] is one rearrangement too many between it and its layer"},
      {"ConstantWeights", "images | conv a =[1,1,2,2]fixed | batch_norm a | output", "a/BatchNorm",
       kWeightsOfA + "come from [Constant \"fixed\"]" + kNoVariable, "a/Conv2D"},
      {"FedWeights", "images | conv a ?[1,1,2,2]fed | batch_norm a | output", "a/BatchNorm",
       kWeightsOfA + "come from [Placeholder \"fed\"]" + kNoVariable, "a/Conv2D"},
      {"ComputedWeights", "[1,1,2,2]v | Mul product [2]g; images | conv a product | batch_norm a | output",
       "a/BatchNorm", kWeightsOfA + "come from [Mul \"product\"]" + kNoVariable},
      {"QuantizedWeights", "[1,1,2,2]v | FakeQuant quant 16; images | conv a quant | batch_norm a | output",
       "a/BatchNorm", kWeightsOfA + "are quantized already"},
      {"WeightsOnTheLeft", "[5,3]a/weights | MatMul a/MatMul ?[3,2]x | batch_norm a | output", "a/BatchNorm",
       "the weights of [MatMul \"a/MatMul\"] come from [Placeholder \"x\"]" + kNoVariable},
      {"OutsideTheScope", "images | conv a | batch_norm a | output", "a/BatchNorm", "outside scope \"net\"",
       "no layer is in scope \"net\"", "net"},
      {"InPrimitiveOps", "", "bn/BatchNorm",
       "its input comes from [Relu \"Relu\"], not from a layer; its moving statistics start anew, at 0 and 1", "", "",
       spell_out_in_primitive_ops},
  };
  return all;
}

class Unfoldable : public ::testing::TestWithParam<std::tuple<UnfoldableCase, BnFold>> {
 protected:
  const UnfoldableCase& unfoldable() const { return std::get<0>(GetParam()); }

  Graph graph() const {
    ToyGraph toy = unfoldable().build == nullptr ? ToyGraph(unfoldable().chains) : ToyGraph();
    if (unfoldable().build != nullptr) unfoldable().build(toy);
    const Output y = toy.graph.outputs().front();
    layers::mul(toy.graph, "loss", y, layers::placeholder(toy.graph, "weighting", y.shape()));
    return std::move(toy.graph);
  }

  bool takes_moments() const { return unfoldable().build == spell_out_in_primitive_ops; }

  RewriteOptions options() const {
    return {.quant_delay = 1000, .bn_fold = std::get<1>(GetParam()), .scope = unfoldable().scope};
  }
};

INSTANTIATE_TEST_SUITE_P(Cases, Unfoldable,
                         ::testing::Combine(::testing::ValuesIn(all_cases()),
                                            ::testing::Values(BnFold::kTf, BnFold::kSingle)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  (std::get<1>(info.param) == BnFold::kTf ? "Corrected" : "Single");
                         });

/// What is said of a batch norm; empty when nothing is.
std::string line_on(const std::vector<BatchNormReport>& lines, const std::string& batch_norm) {
  for (const BatchNormReport& line : lines)
    if (line.batch_norm == batch_norm) return (line.folded ? "folded: " : "not folded: ") + line.text;
  return "";
}

/// Where the original cannot run, both must say so.
void expect_same_run(Graph& before, Graph& after, bool training) {
  for (const SessionOptions& options : {kDouble, SessionOptions{}}) {
    Outcome wanted;
    Outcome got;
    const std::string refused =
        error_of([&] { wanted = testing::run(before, before.at("loss").output(), options, training); });
    const std::string found =
        error_of([&] { got = testing::run(after, after.at("loss").output(), options, training); });
    // The batch norm's quantizer may be named instead.
    const auto reason = [](const std::string& text) { return text.substr(std::min(text.find("] "), text.size())); };
    EXPECT_EQ(reason(found), reason(refused));
    if (refused.empty()) testing::expect_same(got, wanted, options.precision == DType::kFloat64 ? 1e-9 : 1e-4);
  }
}

TEST_P(Unfoldable, IsReportedAndComputesWhatItDid) {
  Graph before = graph();
  Graph after = before.clone();
  const RewriteReport report = create_training_graph(after, options());
  const std::string line = line_on(report.batch_norms, unfoldable().batch_norm);
  EXPECT_TRUE(line.starts_with("not folded: ")) << line;
  EXPECT_NE(line.find(unfoldable().reason), std::string::npos) << line;
  EXPECT_NE(report.text().find(unfoldable().reason), std::string::npos) << report.text();
  expect_same_run(before, after, true);
  if (!takes_moments()) expect_same_run(before, after, false);
}

TEST_P(Unfoldable, EvaluatesAsItDid) {
  Graph before = graph();
  Graph after = before.clone();
  fold_batch_norms(after, options().folding(), false);
  after.verify();
  if (!takes_moments()) expect_same_run(before, after, false);
  EXPECT_NO_THROW(create_eval_graph(after, options()));
}

TEST_P(Unfoldable, StrictNamesTheLayer) {
  Graph after = graph();
  RewriteOptions strict = options();
  strict.strict = true;
  const std::string refused = error_of([&] { create_training_graph(after, strict); });
  EXPECT_NE(refused.find(unfoldable().refused), std::string::npos) << refused;
  EXPECT_EQ(refused.empty(), unfoldable().refused.empty()) << refused;
}

TEST(Unfoldable, IsNoPartOfAnyLayer) {
  ToyGraph toy("images | conv a | Mul a/Mul [2]a/factor | batch_norm a");
  const RewriteReport report = create_training_graph(toy.graph);
  ASSERT_EQ(report.matches.size(), 1u);
  EXPECT_EQ(report.matches[0].text.find("BatchNorm"), std::string::npos) << report.matches[0].text;
  EXPECT_EQ(toy.input("a/Mul"), "a/act_quant");
  EXPECT_TRUE(std::ranges::any_of(report.edges, [](const EdgeReport& edge) {
    return edge.consumer == "a/BatchNorm" && edge.reason == "a parameter of a batch norm that stays float";
  }));
}

/// The first becomes part of the layer, which is quantized; the second normalises what the quantizer gives, and has one
/// of its own.
TEST(TwoBatchNormsInARow, AreBothQuantized) {
  for (const BnFold fold : {BnFold::kTf, BnFold::kSingle})
    for (const bool training : {true, false}) {
      SCOPED_TRACE(concat(names_of(fold)[static_cast<std::size_t>(fold)], training ? " training" : " evaluation"));
      ToyGraph toy("images | conv a | batch_norm a | batch_norm b | conv c | output");
      const auto rewrite = training ? create_training_graph : create_eval_graph;
      const RewriteReport report = rewrite(toy.graph, {.bn_fold = fold, .strict = true});
      EXPECT_EQ(report.inserted, (testing::Names{"a/weights_quant", "a/act_quant", "c/weights_quant", "c/act_quant",
                                                 "b/BatchNorm/activation_BatchNorm_quant"}));
      EXPECT_EQ(toy.input("b/BatchNorm"), "a/act_quant");
      EXPECT_EQ(toy.input("c/Conv2D"), "b/BatchNorm/activation_BatchNorm_quant");
      EXPECT_TRUE(rewrite(toy.graph, {.bn_fold = fold}).inserted.empty());
    }
}

}  // namespace
}  // namespace miniqat::quantize::unfoldable_test
