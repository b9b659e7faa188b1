#include "quantize/fold/fold_candidate.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "layers/elementwise.h"
#include "layers/parts.h"
#include "layers/reshape.h"
#include "layers/space_to_batch.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

/// A reader of the tensor beside `readers`; empty if there is none.
std::string other_reader(const Graph& graph, Output tensor, const std::unordered_set<const Node*>& readers) {
  for (const Use& use : tensor.node->uses(tensor.index))
    if (!readers.contains(use.node)) return describe(*use.node);
  return graph.is_output(tensor) ? "the graph's outputs" : "";
}

bool keeps_channels(const Node& node) {
  const Shape& before = node.input(0).shape();
  const Shape& after = node.output().shape();
  const auto* blocks = node.as<layers::BatchToSpaceNd>();
  if (blocks && std::ssize(blocks->block_shape) == before.rank() - 1) return false;
  return before.rank() > 0 && after.rank() > 0 && before.channels() == after.channels();
}

bool is_rearrangement(const Node* node) { return !node->as<layers::Identity>(); }

/// The nodes above a batch norm up to the first one that is neither Identity, Reshape nor BatchToSpaceND.
struct Above {
  /// May be a layer.
  Node* layer = nullptr;
  /// From the layer on.
  std::vector<Node*> between;
  /// Why folding across it would be wrong, or empty.
  std::string why_not;
};

/// `tensor` is what the batch norm normalises, `readers` are the nodes that folding it would take away.
Above look_above(const Graph& graph, Output tensor, std::unordered_set<const Node*> readers) {
  Above above;
  for (;; tensor = tensor.node->input(0)) {
    Node& node = *tensor.node;
    above.layer = &node;
    if (const std::string other = other_reader(graph, tensor, readers); !other.empty())
      above.why_not = concat(describe(node), " is read by ", other, " as well");
    else if (!has_role(node, OpRole::kBeforeBatchNorm))
      return above;
    else if (!keeps_channels(node))
      above.why_not = concat(describe(node), " moves the channels");
    else if (is_rearrangement(&node) && std::ranges::any_of(above.between, is_rearrangement))
      above.why_not = concat(describe(node), " is one rearrangement too many between it and its layer");
    if (!above.why_not.empty()) return above;
    above.between.insert(above.between.begin(), &node);
    readers = {&node};
  }
}

bool adds_bias_to_layer(const Node& node) {
  if (!node.as<layers::BiasAdd>() && !node.as<layers::Add>()) return false;
  return std::ranges::any_of(
      std::array{0, 1}, [&](int i) { return is_layer(*node.input(i).node) && node.input(1 - i).shape().rank() <= 1; });
}

std::string why_no_layer(const Node& node) {
  if (adds_bias_to_layer(node))
    return concat("a bias lies between it and its layer, ", describe(node), "; remove the bias, beta replaces it");
  return concat("its input comes from ", describe(node), ", not from a layer");
}

/// Empty when the layer's right operand is a Variable or made of Variables.
std::string why_no_weights(const Node& layer) {
  const Node& source = *source_through(layer.input(1), kIdentity).node;
  if (source.as<Variable>()) return "";
  const auto from_variable = [](const Output& part) {
    return source_through(part, kIdentity).node->as<Variable>() != nullptr;
  };
  if (source.as<layers::Concat>() && std::ranges::all_of(source.inputs(), from_variable)) return "";
  if (is_quantizer(source)) return concat("the weights of ", describe(layer), " are quantized already");
  return concat("the weights of ", describe(layer), " come from ", describe(source), ", not from a Variable");
}

/// Folded by evaluation alone, a batch norm that shares its statistics would be quantized there without training having
/// observed it.
std::string why_not_statistic(Output statistic, const Node* norm) {
  if (!statistic.node) return "";
  for (const Use& use : statistic.node->uses(statistic.index))
    if (use.node != norm && use.node->as<layers::BatchNorm>() && use.input >= 3)
      return concat("its moving statistics belong to ", describe(*use.node), " as well");
  return "";
}

std::string why_not_norm(const Graph& graph, const Node& norm) {
  for (const int k : {1, 2})
    if (const std::string other = other_reader(graph, norm.output(k), {&norm}); !other.empty())
      return concat("its statistics are read by ", other);
  const std::string why = why_not_statistic(norm.input(3), &norm);
  return why.empty() ? why_not_statistic(norm.input(4), &norm) : why;
}

/// The layer above and, if it cannot take a batch norm, why.
FoldingVerdict examine_above(const Above& above) {
  if (!above.why_not.empty()) return {.text = above.why_not};
  if (!is_layer(*above.layer)) return {.text = why_no_layer(*above.layer)};
  return {.layer = above.layer, .text = why_no_weights(*above.layer)};
}

bool is_read(const Graph& graph, Output y) { return !y.node->uses().empty() || graph.is_output(y); }

FoldingVerdict unread() { return {.is_read = false, .text = "nobody reads its output"}; }

std::string folded_layer_name(const Node& batch_norm) {
  if (is_folded_late(batch_norm))
    return source_through(batch_norm.input(0), OpRole::kQuantizer | OpRole::kBeforeBatchNorm).node->name();
  const Node* product = find_weight_scale(batch_norm) ? batch_norm.input(0).node : nullptr;
  if (!product)
    for (const Use& use : batch_norm.uses(2))
      if (use.node->as<BatchNormCorrection>())
        if (const auto folded = find_folded_layer(*use.node)) return folded->layer->name();
  if (!product) return "a layer";
  const bool first = product->input(0).node->as<BatchNormScale>();
  return source_through(product->input(first ? 1 : 0), OpRole::kBeforeBatchNorm).node->name();
}

}  // namespace

FoldingVerdict examine_batch_norm(const Graph& graph, Node& batch_norm) {
  if (folding_of(batch_norm)) return {.already = true, .text = "already, into " + folded_layer_name(batch_norm)};
  if (!is_read(graph, batch_norm.output())) return unread();
  Above above = look_above(graph, batch_norm.input(0), {&batch_norm});
  FoldingVerdict verdict = examine_above(above);
  if (verdict.text.empty()) verdict.text = why_not_norm(graph, batch_norm);
  if (verdict.text.empty()) verdict.foldable = Foldable{&batch_norm, above.layer, std::move(above.between)};
  return verdict;
}

FoldingVerdict examine_unfused(const Graph& graph, const UnfusedBatchNorm& batch_norm) {
  if (!is_read(graph, batch_norm.result->output())) return unread();
  const std::vector<Node*> gone = erased_by_fusing(graph, batch_norm);
  FoldingVerdict verdict = examine_above(look_above(graph, batch_norm.x, {gone.begin(), gone.end()}));
  if (verdict.text.empty()) verdict.text = why_not_statistic(batch_norm.mean, nullptr);
  if (verdict.text.empty()) verdict.text = why_not_statistic(batch_norm.variance, nullptr);
  return verdict;
}

}  // namespace miniqat::quantize
