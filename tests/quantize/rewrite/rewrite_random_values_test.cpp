// A rewritten graph computes what the original does, whatever that is, until quantization begins.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/engine/session.h"
#include "core/threads/parallel.h"
#include "layers/batch_norm.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/fold/spelled_out_batch_norm.h"
#include "tests/quantize/rewrite/random_rewrite.h"

namespace miniqat::quantize::rewrite_random_values_test {
namespace {

using testing::for_random_nets;
using testing::net_count;
using testing::random_net;
using testing::well_formed_net;

constexpr SessionOptions kDouble = {.backend = Backend::kReference, .precision = DType::kFloat64};
constexpr SessionOptions kReferenceFloat = {.backend = Backend::kReference};
constexpr SessionOptions kFast = {};

using Values = std::map<std::string, std::vector<double>>;

/// All that a step computes, by name.
struct Outcome {
  Values outputs;
  Values gradients;
  /// After the step.
  Values variables;
};

std::vector<double> numbers(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat64) return {tensor.data<double>(), tensor.data<double>() + tensor.elements()};
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

Feeds feeds_for(const Graph& graph) {
  Feeds feeds;
  for (const Node* node : graph.nodes()) {
    if (node->type() != "Placeholder") continue;
    Tensor tensor(node->output().shape());
    Random random(hash_text(node->name()));
    for (float& value : tensor.values<float>()) value = random.uniform(-1, 1);
    feeds.emplace_back(node->output(), tensor);
  }
  return feeds;
}

/// Each output times a placeholder, so that no two elements have the same gradient, in one row.
Output add_loss(Graph& graph) {
  std::vector<Output> rows;
  for (const Output& output : std::vector(graph.outputs())) {
    const std::string name = "loss" + std::to_string(rows.size());
    const Output weighted =
        layers::mul(graph, name, output, layers::placeholder(graph, name + "/weighting", output.shape()));
    rows.push_back(layers::reshape(graph, name + "/row", weighted, {.shape = {-1}}));
  }
  return layers::concat(graph, "loss", rows);
}

/// One step at the given quantization step, on a copy of the graph.
Outcome run(const Graph& original, const SessionOptions& options, bool training, std::int64_t step = 0) {
  Graph graph = original.clone();
  const Output loss = add_loss(graph);
  Session session(graph, options);
  session.set_quantization_step(step);
  RunRequest request = {.fetches = graph.outputs(), .gradients_of = loss, .training = training};
  for (const Node* node : graph.nodes()) {
    const auto* variable = node->as<Variable>();
    if (node->type() == "Placeholder" || (variable && variable->trainable))
      request.gradient_targets.push_back(node->output());
  }
  const RunResult result = session.run(request, feeds_for(graph));
  Outcome outcome;
  for (std::size_t k = 0; k < result.fetched.size(); ++k)
    outcome.outputs["output " + std::to_string(k)] = numbers(result.fetched[k]);
  for (std::size_t k = 0; k < result.gradients.size(); ++k)
    outcome.gradients["gradient of " + request.gradient_targets[k].node->name()] = numbers(result.gradients[k]);
  for (const auto& [name, value] : session.variables()) outcome.variables[name] = numbers(value);
  return outcome;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::isfinite(value) ? std::abs(value) : INFINITY);
  return most;
}

double largest(const Values& all) {
  double most = 0;
  for (const auto& [name, values] : all) most = std::max(most, largest(values));
  return most;
}

bool is_finite(const Outcome& outcome) {
  return std::isfinite(largest(outcome.outputs)) && std::isfinite(largest(outcome.gradients)) &&
         std::isfinite(largest(outcome.variables));
}

/// The largest difference, relative to the tensor's largest magnitude, and where it is. Rounding leaves noise where
/// large numbers should cancel to zero, so magnitudes far below all others don't count.
std::pair<double, std::string> difference(const Values& actual, const Values& expected) {
  const double least = std::max(1e-3, 1e-3 * largest(expected));
  std::pair<double, std::string> worst = {0, ""};
  for (const auto& [name, values] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end() || found->second.size() != values.size()) return {INFINITY, name + " is missing"};
    const double scale = std::max(least, largest(values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double relative = std::abs(found->second[i] - values[i]) / scale;
      if (!(relative <= worst.first)) worst = {relative, concat(name, " at ", i)};
    }
  }
  return worst;
}

std::pair<double, std::string> difference(const Outcome& actual, const Outcome& expected) {
  return std::max({difference(actual.outputs, expected.outputs), difference(actual.gradients, expected.gradients),
                   difference(actual.variables, expected.variables)});
}

void expect_same(const Outcome& actual, const Outcome& expected, double tolerance) {
  const auto [relative, where] = difference(actual, expected);
  EXPECT_LE(relative, tolerance) << where;
}

/// A quantizer of the user's that acts: what float32 rounds otherwise may then differ by a whole quantization level.
bool quantizes(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    const auto* quantizer = node->as<FakeQuant>();
    return quantizer && quantizer->delay == 0;
  });
}

/// Makes the original's batch norms freeze when those of the rewritten graph do. False where a batch norm that freezes
/// has no counterpart to freeze, being spelled out in primitive ops.
bool freeze_alike(Graph& original, const Graph& rewritten) {
  for (const Node* node : rewritten.nodes()) {
    const auto* norm = node->as<layers::BatchNorm>();
    if (!norm) continue;
    Node* counterpart = original.find(node->name());
    if (!counterpart) return false;
    layers::BatchNormAttributes attributes = *counterpart->as<layers::BatchNorm>();
    attributes.freeze_delay = norm->freeze_delay;
    original.replace_op(*counterpart, layers::BatchNorm::make(attributes));
  }
  return true;
}

/// False where float32 is too coarse to compare in: where the original's own results depend on the order of summation.
bool says_something_in_float(const Graph& graph, std::int64_t step) {
  if (quantizes(graph)) return false;
  const Outcome exact = run(graph, kDouble, true, step);
  if (!is_finite(exact)) return false;
  return std::ranges::all_of(std::array{kFast, kReferenceFloat}, [&](const SessionOptions& options) {
    return difference(run(graph, options, true, step), exact).first <= 1e-5;
  });
}

void expect_all_freeze(const Graph& graph, std::int64_t delay) {
  for (const Node* node : graph.nodes()) {
    const auto* norm = node->as<layers::BatchNorm>();
    EXPECT_TRUE(!norm || !norm->is_training || norm->freeze_delay == delay) << node->name();
  }
}

/// By the net's kind: any ops, or well formed.
class RewriteRandomValues : public ::testing::TestWithParam<bool> {
 protected:
  /// Threads would only wait for one another: no tensor here is worth sharing.
  void SetUp() override { set_thread_count(1); }

  template <class Check>
  void for_nets(const Check& check) {
    for_random_nets(GetParam() ? well_formed_net : random_net, check);
  }
};

TEST_P(RewriteRandomValues, StayInDouble) {
  std::size_t skipped = 0;
  for_nets([&](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    const Outcome expected = run(graph, kDouble, true);
    if (!is_finite(expected)) {
      ++skipped;
      return;
    }
    create_training_graph(graph, options);
    expect_same(run(graph, kDouble, true), expected, 1e-9);
  });
  EXPECT_LE(skipped, net_count() / 20);
}

TEST_P(RewriteRandomValues, StayInFloat) {
  std::size_t skipped = 0;
  for_nets([&](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    if (!says_something_in_float(graph, 0)) {
      ++skipped;
      return;
    }
    const Outcome expected = run(graph, kFast, true);
    create_training_graph(graph, options);
    expect_same(run(graph, kFast, true), expected, 1e-4);
  });
  EXPECT_LE(skipped, net_count() / 2);
}

TEST_P(RewriteRandomValues, StayOnceBatchNormsAreFrozen) {
  std::size_t compared = 0;
  for_nets([&](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    Graph original = graph.clone();
    create_training_graph(graph, options);
    if (!options.freeze_bn_delay || !freeze_alike(original, graph)) return;
    if (options.scope.empty()) expect_all_freeze(graph, *options.freeze_bn_delay);
    const std::int64_t step = *options.freeze_bn_delay;
    const Outcome expected = run(original, kDouble, true, step);
    if (!is_finite(expected)) return;
    ++compared;
    expect_same(run(graph, kDouble, true, step), expected, 1e-9);
    if (says_something_in_float(original, step))
      expect_same(run(graph, kFast, true, step), run(original, kFast, true, step), 1e-4);
  });
  EXPECT_GE(compared, net_count() / 5);
}

/// By folding alone, for an evaluation graph always quantizes.
TEST_P(RewriteRandomValues, StayInEvaluation) {
  std::size_t skipped = 0;
  for_nets([&](Graph& graph, const RewriteOptions& options, std::uint64_t) {
    // In primitive ops it takes the batch's statistics in evaluation, too, until it is folded.
    if (!find_unfused_batch_norms(graph).empty()) return;
    const Outcome expected = run(graph, kDouble, false);
    if (!is_finite(expected)) {
      ++skipped;
      return;
    }
    Graph evaluation = graph.clone();
    fold_batch_norms(evaluation, options.folding(), false);
    expect_same(run(evaluation, kDouble, false), expected, 1e-9);
    fold_batch_norms(graph, options.folding(), true);
    expect_same(run(graph, kDouble, false), expected, 1e-9);
    unfold_corrections(graph);
    expect_same(run(graph, kDouble, false), expected, 1e-9);
  });
  EXPECT_LE(skipped, net_count() / 20);
}

INSTANTIATE_TEST_SUITE_P(Nets, RewriteRandomValues, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "WellFormed" : "AnyOps"; });

}  // namespace
}  // namespace miniqat::quantize::rewrite_random_values_test
