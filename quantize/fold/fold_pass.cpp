#include "quantize/fold/fold_pass.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/matmul.h"
#include "layers/reshape.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/fold_candidate.h"
#include "quantize/fold/spelled_out_batch_norm.h"
#include "quantize/quantizers.h"

namespace miniqat::quantize {
namespace {

/// Erases the nodes and all above them that nobody reads after that, but for variables and placeholders.
void erase_unread(Graph& graph, std::vector<Node*> pending) {
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    std::erase(pending, node);
    bool read = false;
    for (std::size_t k = 0; k < node->output_specs().size(); ++k) {
      const Output output = node->output(static_cast<int>(k));
      read = read || !node->uses(output.index).empty() || graph.is_output(output);
    }
    if (read || node->inputs().empty()) continue;
    for (const Output& input : node->inputs()) pending.push_back(input.node);
    graph.erase(*node);
  }
}

/// Builds what takes the place of one layer and its batch norm.
class Folder {
 public:
  Folder(Graph& graph, const Foldable& found)
      : graph_(graph),
        found_(found),
        scope_(scope_of(found.layer->name())),
        norm_(*found.batch_norm->as<layers::BatchNorm>()),
        gamma_(found.batch_norm->input(1)),
        beta_(found.batch_norm->input(2)),
        moving_mean_(found.batch_norm->input(3)),
        moving_variance_(found.batch_norm->input(4)),
        weights_(found.layer->input(1)) {}

  /// All return the new layer's name.
  std::string with_corrections(std::int64_t freeze_delay) {
    freeze(freeze_delay);
    const Output mean = found_.batch_norm->output(1);
    const Output variance = found_.batch_norm->output(2);
    Node& fold =
        add("BatchNorm_Fold", BatchNormFold::make(BatchNormFoldAttributes{epsilon()}), {gamma_, beta_, mean, variance});
    Node& correction =
        add("batch_norm_correction", BatchNormCorrection::make(BatchNormCorrectionAttributes{epsilon(), freeze_delay}),
            {gamma_, mean, variance, moving_mean_, moving_variance_});
    const Output corrected =
        mul("correction_mult", weights_, weight_factor("correction_reshape", correction.output(0)));
    const Output folded = mul("mul_fold", corrected, weight_factor("scale_reshape", fold.output(0)));
    Output y = clone_layer(folded);
    y = mul("post_conv_mul", y, correction.output(1));
    y = plus("correction_add", y, correction.output(2));
    y = plus("add_fold", y, fold.output(1));
    graph_.reroute(found_.batch_norm->output(), y);
    return layer_name_;
  }

  std::string with_single_convolution(std::int64_t freeze_delay) {
    freeze(freeze_delay);
    Node& scale = add("batch_norm_scale", BatchNormScale::make(BatchNormScaleAttributes{.epsilon = epsilon()}),
                      {gamma_, moving_variance_});
    const Output folded = mul("mul_fold", weights_, weight_factor("scale_reshape", scale.output(0)));
    const Output y = mul("post_conv_mul", clone_layer(folded), scale.output(1));
    const Output x = found_.batch_norm->input(0);
    const Use use = {found_.batch_norm, 0};
    graph_.reroute(x, y, std::span(&use, 1));
    erase_unread(graph_, {x.node});
    return layer_name_;
  }

  std::string with_moving_statistics() {
    Node& fold = add("BatchNorm_Fold", BatchNormFold::make(BatchNormFoldAttributes{epsilon()}),
                     {gamma_, beta_, moving_mean_, moving_variance_});
    const Output folded = mul("mul_fold", weights_, weight_factor("scale_reshape", fold.output(0)));
    const Output y = plus("add_fold", clone_layer(folded), fold.output(1));
    graph_.reroute(found_.batch_norm->output(), y);
    erase_unread(graph_, {found_.batch_norm});
    return layer_name_;
  }

  std::string late(std::int64_t freeze_delay, bool is_training) {
    layers::BatchNormAttributes attributes = norm_;
    attributes.is_training = attributes.is_training && is_training;
    attributes.freeze_delay = attributes.is_training ? freeze_delay : -1;
    attributes.folds_late = true;
    graph_.replace_op(*found_.batch_norm, layers::BatchNorm::make(attributes));
    for (Node* node : found_.between) {
      if (!node->as<layers::Identity>()) continue;
      graph_.reroute(node->output(), node->input(0));
      graph_.erase(*node);
    }
    return found_.layer->name();
  }

  /// What it has added, in order.
  const std::vector<Node*>& added() const { return added_; }

 private:
  double epsilon() const { return norm_.epsilon; }

  Node& add(const std::string& name, std::shared_ptr<const Op> op, std::vector<Output> inputs) {
    return add_as(graph_.unique_name(join_scope(scope_, name)), std::move(op), std::move(inputs));
  }
  Node& add_as(const std::string& name, std::shared_ptr<const Op> op, std::vector<Output> inputs) {
    added_.push_back(&graph_.add(name, std::move(op), std::move(inputs)));
    return *added_.back();
  }
  Output mul(const std::string& name, Output a, Output b) { return add(name, layers::Mul::make(), {a, b}).output(); }
  Output plus(const std::string& name, Output a, Output b) { return add(name, layers::Add::make(), {a, b}).output(); }

  void freeze(std::int64_t delay) {
    layers::BatchNormAttributes attributes = norm_;
    attributes.freeze_delay = delay;
    graph_.replace_op(*found_.batch_norm, layers::BatchNorm::make(attributes));
  }

  /// A number for each output channel in a shape that stretches over the weights.
  Output weight_factor(const std::string& name, Output factor) {
    const Shape& weights = weights_.shape();
    std::vector<std::int64_t> shape;
    if (found_.layer->as<layers::DepthwiseConv2d>())
      shape = {weights[2], weights[3]};
    else if (const auto* matmul = found_.layer->as<layers::MatMul>(); matmul && matmul->transpose_b)
      shape = {weights[0], 1};
    else
      return factor;
    return add(name, layers::Reshape::make(layers::ReshapeAttributes{shape}), {factor}).output();
  }

  /// The layer and the ops between it and the batch norm once more, on other weights; copies (Identity) left out.
  Output clone_layer(Output weights) {
    Output y = clone(*found_.layer, {found_.layer->input(0), weights});
    layer_name_ = y.node->name();
    for (const Node* node : found_.between)
      if (!node->as<layers::Identity>()) y = clone(*node, {y});
    return y;
  }
  Output clone(const Node& node, std::vector<Output> inputs) {
    return add_as(graph_.unique_name(node.name() + "_Fold"), node.shared_op(), std::move(inputs)).output();
  }

  Graph& graph_;
  const Foldable& found_;
  const std::string scope_;
  const layers::BatchNormAttributes norm_;
  const Output gamma_;
  const Output beta_;
  const Output moving_mean_;
  const Output moving_variance_;
  const Output weights_;
  std::string layer_name_;
  std::vector<Node*> added_;
};

/// Why a batch norm is not folded into the layer before it; empty if it can be.
std::string why_not(const FoldingVerdict& verdict, const FoldOptions& options) {
  const bool is_outside = verdict.layer && !options.scope.has(*verdict.layer);
  return is_outside ? options.scope.outside() : verdict.text;
}

/// `fresh` gets those whose moving statistics are new. A batch norm that nobody reads stays spelled out, and so does
/// one out of scope that cannot be folded.
std::vector<BatchNormReport> fuse_spelled_out(Graph& graph, const FoldOptions& options,
                                              std::unordered_set<const Node*>& fresh) {
  std::vector<BatchNormReport> skipped;
  std::vector<UnfusedBatchNorm> found = find_unfused_batch_norms(graph);
  for (const UnfusedBatchNorm& norm : found) {
    const FoldingVerdict verdict = examine_unfused(graph, norm);
    const std::string why = why_not(verdict, options);
    const bool can_stand = verdict.is_read && options.scope.has(*norm.result);
    if (!why.empty() && !can_stand) {
      skipped.push_back({norm.result->name(), false, "a batch norm in primitive ops: " + why});
      continue;
    }
    const Output y = norm.result->output();
    Node& fused = fuse_batch_norm(graph, norm);
    for (UnfusedBatchNorm& later : found)
      if (later.x == y) later.x = fused.output();
    if (fused.as<layers::BatchNorm>()->is_training) fresh.insert(&fused);
  }
  return skipped;
}

void freeze_unfolded(Graph& graph, const FoldOptions& options) {
  if (!options.freeze_bn_delay) return;
  for (Node* node : graph.nodes()) {
    const auto* norm = node->as<layers::BatchNorm>();
    if (!norm || !norm->is_training || norm->freeze_delay >= 0 || folding_of(*node) || !options.scope.has(*node))
      continue;
    layers::BatchNormAttributes attributes = *norm;
    attributes.freeze_delay = *options.freeze_bn_delay;
    graph.replace_op(*node, layers::BatchNorm::make(attributes));
  }
}

/// In a graph for evaluation, of one that was spelled out and stands by itself.
void keep_statistics(Graph& graph, Node& fused) {
  layers::BatchNormAttributes attributes = *fused.as<layers::BatchNorm>();
  attributes.is_training = false;
  graph.replace_op(fused, layers::BatchNorm::make(attributes));
}

/// What is to be said of a batch norm after folding.
void describe_remaining(const Graph& graph, BatchNormReport& line) {
  const Node* node = graph.find(line.batch_norm);
  const auto* norm = node ? node->as<layers::BatchNorm>() : nullptr;
  if (!norm) return;
  line.folding = folding_of(*node);
  line.trains = norm->is_training;
  line.freezes = freeze_delay_of(*node).has_value();
}

/// Returns the new layer's name.
std::string fold(Folder& folder, const Foldable& found, const FoldOptions& options, bool is_training) {
  const layers::BatchNormAttributes norm = *found.batch_norm->as<layers::BatchNorm>();
  const std::int64_t freeze = norm.freeze_delay >= 0 ? norm.freeze_delay : options.freeze_bn_delay.value_or(-1);
  if (options.bn_fold == BnFold::kLate) return folder.late(freeze, is_training);
  if (!is_training || !norm.is_training) return folder.with_moving_statistics();
  return options.bn_fold == BnFold::kTf ? folder.with_corrections(freeze) : folder.with_single_convolution(freeze);
}

/// The place of the nodes that folding adds: that of the batch norm, which may be gone by now. So layers come in the
/// same order however they are folded: the first of those that share a bypass names and sets its quantizer.
class AddedNodes {
 public:
  explicit AddedNodes(const Graph& graph) : before_(graph.nodes()) {}

  void add(const Node* batch_norm, const std::vector<Node*>& nodes) {
    added_.insert(nodes.begin(), nodes.end());
    behind_[batch_norm] = nodes;
  }

  void put_in_place(Graph& graph) const {
    if (behind_.empty()) return;
    std::vector<Node*> order;
    for (Node* node : before_) {
      // A node that was added may live where an erased one did.
      if (graph.owns(node) && !added_.contains(node)) order.push_back(node);
      if (const auto found = behind_.find(node); found != behind_.end())
        order.insert(order.end(), found->second.begin(), found->second.end());
    }
    graph.set_node_order(order);
  }

 private:
  std::vector<Node*> before_;
  std::unordered_set<const Node*> added_;
  std::unordered_map<const Node*, std::vector<Node*>> behind_;
};

/// mul_fold on moving statistics, and no more corrections.
void unfold_layer(Graph& graph, const FoldedLayer& folded) {
  const std::array<Use, 2> statistics = {Use{folded.fold, 2}, Use{folded.fold, 3}};
  const Node& norm = *folded.batch_norm;
  graph.reroute(norm.output(1), norm.input(3), std::span(&statistics[0], 1));
  graph.reroute(norm.output(2), norm.input(4), std::span(&statistics[1], 1));
  graph.reroute(folded.correction_mult->output(), folded.weights);
  graph.reroute(folded.correction_add->output(), folded.layer_output);
  erase_unread(graph, {folded.correction_add, folded.correction_mult});
}

/// The batch norm after a layer with scaled weights becomes part of these weights and a bias.
void fold_single(Graph& graph, Node& batch_norm, Node& scale, AddedNodes& added) {
  const std::string scope = scope_of(scale.name());
  const auto add = [&](const char* name, std::shared_ptr<const Op> op, std::vector<Output> inputs, const Node& place) {
    Node& node = graph.add(graph.unique_name(join_scope(scope, name)), std::move(op), std::move(inputs));
    added.add(&place, {&node});
    return node.output();
  };
  const Node& product = *batch_norm.input(0).node;
  const Output layer_output = product.input(product.input(0) == scale.output(1) ? 1 : 0);
  const double epsilon = batch_norm.as<layers::BatchNorm>()->epsilon;
  const Output fold = add("BatchNorm_Fold", BatchNormFold::make(BatchNormFoldAttributes{epsilon}),
                          {batch_norm.input(1), batch_norm.input(2), batch_norm.input(3), batch_norm.input(4)}, scale);
  graph.reroute(scale.output(0), fold);
  const Output y = add("add_fold", layers::Add::make(), {layer_output, fold.node->output(1)}, product);
  graph.reroute(batch_norm.output(), y);
  erase_unread(graph, {&batch_norm});
}

}  // namespace

std::string Scope::outside() const { return concat("outside scope ", quote(name)); }

std::vector<BatchNormReport> fold_batch_norms(Graph& graph, const FoldOptions& options, bool is_training) {
  std::unordered_set<const Node*> fresh;
  std::vector<BatchNormReport> lines = fuse_spelled_out(graph, options, fresh);
  AddedNodes added(graph);
  for (Node* node : graph.topological_order()) {
    if (!node->as<layers::BatchNorm>()) continue;
    const std::string name = node->name();
    const bool is_fresh = fresh.contains(node);
    const char* const anew = is_fresh ? "; its moving statistics start anew, at 0 and 1" : "";
    const FoldingVerdict verdict = examine_batch_norm(graph, *node);
    if (const std::string why = why_not(verdict, options); !why.empty()) {
      if (is_fresh && !is_training) keep_statistics(graph, *node);
      lines.push_back({name, verdict.already, concat(why, anew), is_fresh});
      continue;
    }
    Folder folder(graph, *verdict.foldable);
    const std::string text = "into " + fold(folder, *verdict.foldable, options, is_training);
    lines.push_back({name, true, concat(text, anew), is_fresh});
    added.add(node, folder.added());
  }
  added.put_in_place(graph);
  if (is_training) freeze_unfolded(graph, options);
  for (BatchNormReport& line : lines) describe_remaining(graph, line);
  return lines;
}

std::vector<FoldedBefore> folded_batch_norms(const Graph& graph) {
  std::vector<FoldedBefore> found;
  for (const Node* node : graph.nodes())
    if (const auto folding = folding_of(*node)) found.push_back({node->name(), *folding});
  return found;
}

void unfold_corrections(Graph& graph) {
  std::vector<FoldedLayer> folded;
  std::vector<std::pair<Node*, Node*>> scaled;
  for (Node* node : graph.nodes()) {
    if (const auto found = find_folded_layer(*node)) folded.push_back(*found);
    if (Node* scale = find_weight_scale(*node)) scaled.emplace_back(node, scale);
  }
  for (const FoldedLayer& layer : folded) unfold_layer(graph, layer);
  AddedNodes added(graph);
  for (const auto& [batch_norm, scale] : scaled) fold_single(graph, *batch_norm, *scale, added);
  added.put_in_place(graph);
}

}  // namespace miniqat::quantize
