#include "quantize/fold/spelled_out_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/graph/source_ops.h"
#include "layers/batch_norm.h"
#include "layers/elementwise.h"
#include "layers/mean.h"
#include "layers/reshape.h"
#include "quantize/graph_matcher.h"

namespace miniqat::quantize {
namespace {

/// The decay of statistics that start anew in the middle of training: forgets the start within some hundred steps.
constexpr double kDecay = 0.99;

PatternRef product(const PatternRef& a, const PatternRef& b) { return op_unordered({layers::Mul::kType}, {a, b}); }

PatternRef sum(const PatternRef& a, const PatternRef& b) {
  return one_of({op_unordered({layers::Add::kType}, {a, b}), op({layers::BiasAdd::kType}, {a, b})});
}

/// value * rsqrt [* gamma], bracketed in any way.
struct ScaledPattern {
  PatternRef value;
  PatternRef rsqrt;
  PatternRef gamma = op({Variable::kType, Constant::kType});
  PatternRef whole = one_of({product(value, one_of({rsqrt, product(rsqrt, gamma)})),
                             product(product(value, rsqrt), gamma), product(product(value, gamma), rsqrt)});
};

struct BatchNormPatterns {
  PatternRef x = anything();
  PatternRef mean = anything();
  PatternRef variance = anything();
  PatternRef epsilon = op({Constant::kType});
  PatternRef beta = op({Variable::kType, Constant::kType});
  PatternRef rsqrt = op({layers::Rsqrt::kType}, {op_unordered({layers::Add::kType}, {variance, epsilon})});

  ScaledPattern deviation = {op({layers::Sub::kType}, {x, mean}), rsqrt};
  ScaledPattern scaled_x = {x, rsqrt};
  ScaledPattern scaled_mean = {mean, op({layers::Rsqrt::kType})};
  PatternRef whole =
      one_of({sum(deviation.whole, beta), sum(scaled_x.whole, op({layers::Sub::kType}, {beta, scaled_mean.whole}))});

  std::optional<UnfusedBatchNorm> read(const Match& match) const;
};

/// The tensor that an op takes, before Identity nodes.
Output operand(Output tensor, int input = 0) { return source_through(tensor.node->input(input), kIdentity); }

/// The input x if `tensor` is the Mean of x over all axes but the last; else a null node.
Output averaged_over_rows(Output tensor) {
  const auto* mean = tensor.node->as<layers::Mean>();
  if (!mean) return {};
  const int rank = tensor.node->input(0).shape().rank();
  std::vector<std::int64_t> axes = mean->axes;
  for (std::int64_t& axis : axes)
    if (axis < 0) axis += rank;
  // Shape inference has seen to it that the axes differ; no axes at all stand for every one.
  const bool all_but_last =
      !axes.empty() && std::ssize(axes) == rank - 1 && std::ranges::find(axes, rank - 1) == axes.end();
  return all_but_last ? operand(tensor) : Output{};
}

/// The tensor of which this one is the square, or a null node.
Output root(Output tensor) {
  if (tensor.node->as<layers::Square>()) return operand(tensor);
  const bool squares = tensor.node->as<layers::Mul>() && operand(tensor, 0) == operand(tensor, 1);
  return squares ? operand(tensor) : Output{};
}

bool is_difference(Output tensor, Output a, Output b) {
  return tensor.node && tensor.node->as<layers::Sub>() && operand(tensor, 0) == a && operand(tensor, 1) == b;
}

bool is_variance_of(Output variance, Output x, Output mean) {
  if (const Output squares = averaged_over_rows(variance); squares.node) {
    const Output deviation = root(squares);
    return is_difference(deviation, x, mean) || is_difference(deviation, mean, x);
  }
  if (!variance.node->as<layers::Sub>()) return false;
  const Output squares = averaged_over_rows(operand(variance, 0));
  return squares.node && root(squares) == x && root(operand(variance, 1)) == mean;
}

bool is_stored(Output statistic) {
  const auto* variable = statistic.node->as<Variable>();
  return variable ? !variable->trainable : statistic.node->as<Constant>() != nullptr;
}

/// The one value of all elements.
std::optional<double> uniform_value(Output constant) {
  const std::vector<double>& values = constant.node->as<Constant>()->value;
  const bool uniform = std::ranges::all_of(values, [&](double value) { return value == values.front(); });
  return uniform ? std::optional(values.front()) : std::nullopt;
}

std::optional<UnfusedBatchNorm> BatchNormPatterns::read(const Match& match) const {
  const bool normalises_x_alone = match.node(scaled_x.whole) != nullptr;
  if (normalises_x_alone && (match.tensor(scaled_x.gamma) != match.tensor(scaled_mean.gamma) ||
                             match.tensor(rsqrt) != match.tensor(scaled_mean.rsqrt)))
    return {};

  UnfusedBatchNorm found;
  found.x = match.tensor(x);
  found.gamma = match.tensor(normalises_x_alone ? scaled_x.gamma : deviation.gamma);
  found.beta = match.tensor(beta);
  found.result = match.node(whole);
  const Shape& shape = found.x.shape();
  const Shape vector = {shape.channels()};
  // Neither epsilon nor keep_dims may have made more of the vectors than vectors along x's channels.
  const Shape& scale = match.tensor(rsqrt).shape();
  if (shape.rank() < 2 || shape.elements() == 0 || found.x.spec() != found.result->output().spec() ||
      scale.channels() != scale.elements() || found.beta.shape() != vector ||
      (found.gamma.node && found.gamma.shape() != vector))
    return {};

  const std::optional<double> constant = uniform_value(match.tensor(epsilon));
  if (!constant || !std::isfinite(*constant) || *constant < 0) return {};
  found.epsilon = *constant;

  const Output centre = match.tensor(mean);
  const Output spread = match.tensor(variance);
  if (averaged_over_rows(centre) == found.x && is_variance_of(spread, found.x, centre)) return found;
  found.mean = centre;
  found.variance = spread;
  const bool stored = is_stored(centre) && is_stored(spread) && centre.shape() == vector && spread.shape() == vector;
  return stored ? std::optional(found) : std::nullopt;
}

/// The ops between the tensors that go in and the result, consumers before producers.
class Interior {
 public:
  explicit Interior(const UnfusedBatchNorm& found) {
    for (const Output& input : {found.x, found.gamma, found.beta, found.mean, found.variance}) seen_.insert(input.node);
    visit(*found.result);
    std::ranges::reverse(nodes_);
  }
  const std::vector<Node*>& nodes() const { return nodes_; }

 private:
  void visit(Node& node) {
    if (!seen_.insert(&node).second) return;
    for (const Output& input : node.inputs()) visit(*input.node);
    nodes_.push_back(&node);
  }

  std::unordered_set<const Node*> seen_;
  std::vector<Node*> nodes_;
};

}  // namespace

std::vector<UnfusedBatchNorm> find_unfused_batch_norms(const Graph& graph) {
  const BatchNormPatterns patterns;
  std::vector<UnfusedBatchNorm> all;
  for (const Match& match : GraphMatcher(graph, {layers::Identity::kType}).find(patterns.whole)) {
    // An op whose operands may be exchanged matches in several ways.
    if (!all.empty() && all.back().result == match.node(patterns.whole)) continue;
    if (const auto found = patterns.read(match)) all.push_back(*found);
  }
  return all;
}

std::vector<Node*> interior_of(const UnfusedBatchNorm& found) { return Interior(found).nodes(); }

std::vector<Node*> erased_by_fusing(const Graph& graph, const UnfusedBatchNorm& found) {
  std::unordered_set<const Node*> erased = {found.result};
  std::vector<Node*> nodes;
  for (Node* node : interior_of(found)) {
    const bool read_elsewhere =
        std::ranges::any_of(node->uses(), [&](const Use& use) { return !erased.contains(use.node); }) ||
        graph.is_output(node->output());
    if (node != found.result && read_elsewhere) continue;
    erased.insert(node);
    nodes.push_back(node);
  }
  return nodes;
}

Node& fuse_batch_norm(Graph& graph, const UnfusedBatchNorm& found) {
  const std::string scope = scope_of(found.result->name());
  const auto free_name = [&](const std::string& name) {
    return graph.unique_name(scope.empty() ? name : scope + "/" + name);
  };
  const Shape vector = found.beta.shape();
  Output gamma = found.gamma;
  if (!gamma.node) gamma = constant(graph, free_name("ones"), vector, {1});
  Output mean = found.mean;
  Output variance = found.variance;
  if (found.takes_moments()) {
    mean = variable(graph, free_name("moving_mean"), vector, Initializer::constant(0), false);
    variance = variable(graph, free_name("moving_variance"), vector, Initializer::constant(1), false);
  }
  const Output y =
      layers::batch_norm(graph, free_name("BatchNorm"), found.x, gamma, found.beta, mean, variance,
                         {.epsilon = found.epsilon, .decay = kDecay, .is_training = found.takes_moments()});

  const std::vector<Node*> unread = erased_by_fusing(graph, found);
  graph.reroute(found.result->output(), y);
  for (Node* node : unread) graph.erase(*node);
  return *y.node;
}

}  // namespace miniqat::quantize
