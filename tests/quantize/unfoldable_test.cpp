// Batch norms that cannot be folded: reported with the reason, and left to compute what they did. In evaluation they
// are a product and a sum for each channel, which have a quantizer of their own where they read integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/graph/graph_json.h"
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

/// A batch norm with parameters `scope`/gamma, beta, moving_mean, moving_variance for any channels.
Output norm(Graph& graph, const std::string& scope, Output x, bool is_training = true, const std::string& moving = "") {
  const Shape channels{x.shape().channels()};
  const std::string of = moving.empty() ? scope : moving;
  const auto vector = [&](const std::string& name, bool trainable) {
    const Node* shared = graph.find(name);
    return shared ? shared->output() : layers::variable(graph, name, channels, {}, trainable);
  };
  return layers::batch_norm(graph, scope + "/BatchNorm", x, vector(scope + "/gamma", true),
                            vector(scope + "/beta", true), vector(of + "/moving_mean", false),
                            vector(of + "/moving_variance", false), {.epsilon = 0.1, .is_training = is_training});
}

Output on_shared_statistics(ToyGraph& toy) {
  const Output a = norm(toy.graph, "a", toy.conv("a", toy.images()));
  return norm(toy.graph, "b", toy.conv("b", a), true, "a");
}

Output bias_between(ToyGraph& toy, bool add) {
  const Output x = toy.conv("a", toy.images());
  if (!add) return norm(toy.graph, "a", toy.bias("a", x));
  return norm(toy.graph, "a", layers::add(toy.graph, "a/Add", toy.vector("a/bias"), x));
}

Output with_weights(ToyGraph& toy, Output weights) {
  return norm(toy.graph, "a", toy.conv("a", toy.images(), weights));
}

Output rearranged_twice(ToyGraph& toy) {
  Output x = layers::reshape(toy.graph, "a/Reshape", toy.conv("a", toy.images()), {.shape = {16, 2}});
  x = layers::identity(toy.graph, "a/copy", x);
  return norm(toy.graph, "a", layers::reshape(toy.graph, "a/Reshape_1", x, {.shape = {4, 4, 2}}));
}

/// The channels are four for a moment, of which the first two stay, both from the layer's first.
Output channels_dealt_out(ToyGraph& toy) {
  const Output x = layers::placeholder(toy.graph, "images", {2, 4, 4, 2});
  return norm(toy.graph, "a",
              layers::batch_to_space(toy.graph, "a/BatchToSpaceND", toy.conv("a", x),
                                     {.block_shape = {1, 1, 2}, .crops = {{0, 0}, {0, 0}, {0, 2}}}));
}

struct UnfoldableCase {
  std::string name;
  /// Returns what the graph is about.
  std::function<Output(ToyGraph&)> build;
  /// The batch norm, and a part of the line about it.
  std::string batch_norm;
  std::string reason;
  /// What --strict names; empty where all is quantized.
  std::string refused = "";
  std::string scope = "";
  /// It took the moments of each batch in evaluation, too; as a BatchNorm it takes the moving ones.
  bool takes_moments = false;
};

void PrintTo(const UnfoldableCase& c, std::ostream* stream) { *stream << c.name; }

std::vector<UnfoldableCase> cases_of_readers() {
  const std::string conv_is_read = "[Conv2D \"a/Conv2D\"] is read by ";
  return {
      {"AnotherReader",
       [](ToyGraph& toy) {
         const Output x = toy.conv("a", toy.images());
         return layers::add(toy.graph, "Add", norm(toy.graph, "a", x), layers::relu(toy.graph, "Relu", x));
       },
       "a/BatchNorm", conv_is_read + "[Relu \"Relu\"] as well"},
      {"AnotherReaderOfACopy",
       [](ToyGraph& toy) {
         const Output x = layers::identity(toy.graph, "copy", toy.conv("a", toy.images()));
         return layers::add(toy.graph, "Add", norm(toy.graph, "a", x), layers::relu(toy.graph, "Relu", x));
       },
       "a/BatchNorm", "[Identity \"copy\"] is read by [Relu \"Relu\"] as well"},
      {"TwoBatchNorms",
       [](ToyGraph& toy) {
         const Output x = toy.conv("a", toy.images());
         return layers::add(toy.graph, "Add", norm(toy.graph, "a", x), norm(toy.graph, "b", x));
       },
       "b/BatchNorm", conv_is_read + "[BatchNorm \"a/BatchNorm\"] as well"},
      {"LayerIsAnOutput",
       [](ToyGraph& toy) {
         const Output x = toy.conv("a", toy.images());
         toy.graph.set_outputs({x});
         return norm(toy.graph, "a", x);
       },
       "a/BatchNorm", conv_is_read + "the graph's outputs as well"},
      {"Dangling",
       [](ToyGraph& toy) {
         const Output x = toy.images();
         norm(toy.graph, "a", toy.conv("a", x));
         return toy.conv_relu("b", x);
       },
       "a/BatchNorm", "nobody reads its output"},
      {"MeanIsRead",
       [](ToyGraph& toy) {
         const Output y = norm(toy.graph, "a", toy.conv("a", toy.images()));
         return layers::add(toy.graph, "Add", y, y.node->output(1));
       },
       "a/BatchNorm", "its statistics are read by [Add \"Add\"]", "a/BatchNorm:1 -> Add (a statistic of a batch norm)"},
      {"VarianceIsAnOutput",
       [](ToyGraph& toy) {
         const Output y = norm(toy.graph, "a", toy.conv("a", toy.images()));
         toy.graph.set_outputs({y.node->output(2)});
         return y;
       },
       "a/BatchNorm", "its statistics are read by the graph's outputs"},
      {"SharedByTwoLayers",
       [](ToyGraph& toy) {
         const Output x = toy.images();
         return norm(toy.graph, "c", layers::add(toy.graph, "c/Add", toy.conv("a", x), toy.conv("b", x)));
       },
       "c/BatchNorm", "its input comes from [Add \"c/Add\"], not from a layer"},
      {"SharedParameters", [](ToyGraph& toy) { return on_shared_statistics(toy); }, "a/BatchNorm",
       "its moving statistics belong to [BatchNorm \"b/BatchNorm\"] as well"},
      {"SharedParametersTheOther", [](ToyGraph& toy) { return on_shared_statistics(toy); }, "b/BatchNorm",
       "its moving statistics belong to [BatchNorm \"a/BatchNorm\"] as well"},
  };
}

// NOLINTNEXTLINE(readability-function-size): a table, a few lines for each case.
std::vector<UnfoldableCase> cases_of_inputs() {
  const std::string not_from_variable = ", not from a Variable";
  return {
      {"AfterBiasAdd", [](ToyGraph& toy) { return bias_between(toy, false); }, "a/BatchNorm",
       "a bias lies between it and its layer, [BiasAdd \"a/BiasAdd\"]; remove the bias"},
      {"AfterAddOfABias", [](ToyGraph& toy) { return bias_between(toy, true); }, "a/BatchNorm",
       "a bias lies between it and its layer, [Add \"a/Add\"]"},
      {"AfterABypass",
       [](ToyGraph& toy) {
         const Output x = toy.images();
         return norm(toy.graph, "a", layers::add(toy.graph, "Add", toy.conv("a", x), x));
       },
       "a/BatchNorm", "its input comes from [Add \"Add\"], not from a layer"},
      {"AfterAFactor",
       [](ToyGraph& toy) {
         const Output x = toy.conv("a", toy.images());
         return norm(toy.graph, "a", layers::mul(toy.graph, "a/Mul", x, toy.vector("a/factor")));
       },
       "a/BatchNorm", "its input comes from [Mul \"a/Mul\"], not from a layer"},
      {"AfterNoLayer",
       [](ToyGraph& toy) {
         const Output x = layers::relu(toy.graph, "Relu", toy.images());
         return toy.conv("b", norm(toy.graph, "a", x));
       },
       "a/BatchNorm", "its input comes from [Relu \"Relu\"], not from a layer",
       "a/BatchNorm -> b/Conv2D (none of its inputs is quantized)"},
      {"AfterAPlaceholder", [](ToyGraph& toy) { return norm(toy.graph, "a", toy.images()); }, "a/BatchNorm",
       "its input comes from [Placeholder \"images\"], not from a layer"},
      {"AfterABatchNorm",
       [](ToyGraph& toy) {
         const Output x = norm(toy.graph, "a", toy.conv("a", toy.images()));
         // Or nothing but noise would reach a's parameters.
         return norm(toy.graph, "b", x, false);
       },
       "b/BatchNorm", "not from a layer"},
      {"ReshapeMovesChannels",
       [](ToyGraph& toy) {
         return norm(toy.graph, "a",
                     layers::reshape(toy.graph, "a/Reshape", toy.conv("a", toy.images()), {.shape = {1, 4, 2, 4}}));
       },
       "a/BatchNorm", "[Reshape \"a/Reshape\"] moves the channels"},
      {"BlocksOfChannels", channels_dealt_out, "a/BatchNorm",
       "[BatchToSpaceND \"a/BatchToSpaceND\"] moves the channels"},
      {"RearrangedTwice", rearranged_twice, "a/BatchNorm",
       "[Reshape \"a/Reshape\"] is one rearrangement too many between it and its layer"},
      {"ConstantWeights",
       [](ToyGraph& toy) {
         return with_weights(toy, layers::constant(toy.graph, "fixed", {1, 1, 2, 2}, {1, 2, 3, 5}));
       },
       "a/BatchNorm", "the weights of [Conv2D \"a/Conv2D\"] come from [Constant \"fixed\"]" + not_from_variable,
       "a/Conv2D"},
      {"FedWeights",
       [](ToyGraph& toy) {
         return with_weights(toy, layers::placeholder(toy.graph, "fed", {1, 1, 2, 2}));
       },
       "a/BatchNorm", "the weights of [Conv2D \"a/Conv2D\"] come from [Placeholder \"fed\"]" + not_from_variable,
       "a/Conv2D"},
      {"ComputedWeights",
       [](ToyGraph& toy) {
         return with_weights(toy, layers::mul(toy.graph, "product", toy.filter("v"), toy.vector("g")));
       },
       "a/BatchNorm", "the weights of [Conv2D \"a/Conv2D\"] come from [Mul \"product\"]" + not_from_variable},
      {"QuantizedWeights",
       [](ToyGraph& toy) {
         return with_weights(
             toy, fake_quant(toy.graph, "quant", toy.filter("v"), {.range = RangeKind::kLastValue, .delay = 1000}));
       },
       "a/BatchNorm", "the weights of [Conv2D \"a/Conv2D\"] are quantized already"},
      {"WeightsOnTheLeft",
       [](ToyGraph& toy) {
         const Output x = layers::placeholder(toy.graph, "x", {3, 2});
         const Output weights = layers::variable(toy.graph, "a/weights", {5, 3});
         return norm(toy.graph, "a", layers::matmul(toy.graph, "a/MatMul", weights, x));
       },
       "a/BatchNorm", "the weights of [MatMul \"a/MatMul\"] come from [Placeholder \"x\"]" + not_from_variable},
      {"OutsideTheScope", [](ToyGraph& toy) { return norm(toy.graph, "a", toy.conv("a", toy.images())); },
       "a/BatchNorm", "outside scope \"net\"", "no layer is in scope \"net\"", "net"},
      {"InPrimitiveOps",
       [](ToyGraph& toy) {
         testing::PrimitiveOps ops;
         const Output x = ops.images();
         ops.graph.set_outputs({ops.batch_norm(layers::relu(ops.graph, "Relu", x))});
         toy.graph = std::move(ops.graph);
         return toy.graph.outputs()[0];
       },
       "bn/BatchNorm",
       "its input comes from [Relu \"Relu\"], not from a layer; its moving statistics start anew, at 0 and 1", "", "",
       true},
  };
}

std::vector<UnfoldableCase> all_cases() {
  std::vector<UnfoldableCase> cases = cases_of_readers();
  std::ranges::move(cases_of_inputs(), std::back_inserter(cases));
  return cases;
}

class Unfoldable : public ::testing::TestWithParam<std::tuple<UnfoldableCase, BnFold>> {
 protected:
  const UnfoldableCase& unfoldable() const { return std::get<0>(GetParam()); }

  Graph graph() const {
    ToyGraph toy;
    const Output y = unfoldable().build(toy);
    std::vector<Output> outputs = {y};
    std::ranges::copy(toy.graph.outputs(), std::back_inserter(outputs));
    toy.graph.set_outputs(outputs);
    layers::mul(toy.graph, "loss", y, layers::placeholder(toy.graph, "weighting", y.shape()));
    return std::move(toy.graph);
  }

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
  if (!unfoldable().takes_moments) expect_same_run(before, after, false);
}

TEST_P(Unfoldable, EvaluatesAsItDid) {
  Graph before = graph();
  Graph after = before.clone();
  fold_batch_norms(after, options().folding(), false);
  after.verify();
  if (!unfoldable().takes_moments) expect_same_run(before, after, false);
  EXPECT_NO_THROW(create_eval_graph(after, options()));
}

TEST_P(Unfoldable, TwiceIsTheSameAsOnce) {
  layers::register_ops();
  register_ops();
  Graph once = graph();
  create_training_graph(once, options());
  Graph twice = once.clone();
  const RewriteReport again = create_training_graph(twice, options());
  EXPECT_EQ(graph_to_json(twice), graph_to_json(once));
  EXPECT_TRUE(again.inserted.empty());
  EXPECT_TRUE(line_on(again.batch_norms, unfoldable().batch_norm).starts_with("not folded: "));
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
  ToyGraph toy;
  const Output x = layers::mul(toy.graph, "a/Mul", toy.conv("a", toy.images()), toy.vector("a/factor"));
  norm(toy.graph, "a", x);
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
      ToyGraph toy;
      const Output twice = norm(toy.graph, "b", norm(toy.graph, "a", toy.conv("a", toy.images())));
      toy.graph.set_outputs({toy.conv("c", twice)});
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
