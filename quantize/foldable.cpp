#include "quantize/foldable.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/quote.h"
#include "core/source_ops.h"
#include "layers/batch_norm.h"
#include "layers/space_to_batch.h"
#include "quantize/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/layer_patterns.h"

namespace miniqat::quantize {
namespace {

constexpr std::array<std::string_view, 1> kIdentity = {"Identity"};
constexpr std::array<std::string_view, 3> kBetween = {"Identity", "Reshape", "BatchToSpaceND"};

bool is_output(const Graph& graph, Output tensor) {
  return std::ranges::find(graph.outputs(), tensor) != graph.outputs().end();
}

/// Who reads the tensor beside `reader`; empty for nobody.
std::string other_reader(const Graph& graph, Output tensor, const Node& reader) {
  for (const Use& use : tensor.node->uses(tensor.index))
    if (use.node != &reader) return describe(*use.node);
  return is_output(graph, tensor) ? "the graph's outputs" : "";
}

bool keeps_channels(const Node& node) {
  const Shape& before = node.input(0).shape();
  const Shape& after = node.output().shape();
  const auto* blocks = node.as<layers::BatchToSpaceNd>();
  if (blocks && std::ssize(blocks->attributes().block_shape) == before.rank() - 1) return false;
  return before.rank() > 0 && after.rank() > 0 && before.channels() == after.channels();
}

bool is_rearrangement(const Node* node) { return node->type() != "Identity"; }

/// What stands between the batch norm and the first node above it that is neither Identity, Reshape nor BatchToSpaceND,
/// which may be a layer. Returns why folding across it would be wrong, or an empty text.
std::string walk_up(const Graph& graph, Foldable& found) {
  const Node* reader = found.batch_norm;
  for (Output tensor = found.batch_norm->input(0);; tensor = tensor.node->input(0)) {
    found.layer = tensor.node;
    if (const std::string other = other_reader(graph, tensor, *reader); !other.empty())
      return concat(describe(*tensor.node), " is read by ", other, " as well");
    if (!is_one_of(tensor.node->type(), kBetween)) break;
    if (!keeps_channels(*tensor.node)) return concat(describe(*tensor.node), " moves the channels");
    if (is_rearrangement(tensor.node) && std::ranges::any_of(found.between, is_rearrangement))
      return concat(describe(*tensor.node), " is one rearrangement too many between it and its layer");
    found.between.insert(found.between.begin(), tensor.node);
    reader = tensor.node;
  }
  return "";
}

bool adds_bias_to_layer(const Node& node) {
  if (node.type() != "BiasAdd" && node.type() != "Add") return false;
  return std::ranges::any_of(
      std::array{0, 1}, [&](int i) { return is_layer(*node.input(i).node) && node.input(1 - i).shape().rank() <= 1; });
}

std::string why_no_layer(const Node& node) {
  if (adds_bias_to_layer(node))
    return concat("a bias stands between it and its layer, ", describe(node), "; leave it out, beta does its work");
  return concat("its input comes from ", describe(node), ", not from a layer");
}

/// Empty when the layer's right operand is a Variable or made of Variables.
std::string why_no_weights(const Node& layer) {
  const Node& source = *source_through(layer.input(1), kIdentity).node;
  if (source.as<Variable>()) return "";
  const auto from_variable = [](const Output& part) {
    return source_through(part, kIdentity).node->as<Variable>() != nullptr;
  };
  if (source.type() == "Concat" && std::ranges::all_of(source.inputs(), from_variable)) return "";
  if (source.type() == "FakeQuant") return concat("the weights of ", describe(layer), " are quantized already");
  return concat("the weights of ", describe(layer), " come from ", describe(source), ", not from a Variable");
}

std::string why_not_norm(const Graph& graph, const Node& norm) {
  for (const int k : {1, 2})
    if (const std::string other = other_reader(graph, norm.output(k), norm); !other.empty())
      return concat("its statistics are read by ", other);
  // Evaluation alone could fold these, and would then quantize what training has never observed.
  for (const int k : {3, 4})
    for (const Use& use : norm.input(k).node->uses(norm.input(k).index))
      if (use.node != &norm && use.node->type() == "BatchNorm" && use.input >= 3)
        return concat("its moving statistics belong to ", describe(*use.node), " as well");
  return "";
}

std::string why_not(const Graph& graph, Foldable& found, std::string_view scope) {
  const Output y = found.batch_norm->output();
  if (y.node->uses().empty() && !is_output(graph, y)) return "nobody reads its output";
  std::string why = walk_up(graph, found);
  if (!why.empty()) return why;
  if (!is_layer(*found.layer)) return why_no_layer(*found.layer);
  if (!in_scope(found.layer->name(), scope)) return concat("outside scope ", quote(scope));
  why = why_no_weights(*found.layer);
  return why.empty() ? why_not_norm(graph, *found.batch_norm) : why;
}

std::string folded_layer_name(const Node& batch_norm) {
  const Node* product = find_weight_scale(batch_norm) ? batch_norm.input(0).node : nullptr;
  if (!product)
    for (const Use& use : batch_norm.uses(2))
      if (use.node->type() == "BatchNormCorrection")
        if (const auto folded = find_folded_layer(*use.node)) return folded->layer->name();
  if (!product) return "a layer";
  const bool first = product->input(0).node->type() == "BatchNormScale";
  return source_through(product->input(first ? 1 : 0), kBetween).node->name();
}

}  // namespace

FoldingVerdict examine_batch_norm(const Graph& graph, Node& batch_norm, std::string_view scope) {
  if (gives_statistics_only(batch_norm) || find_weight_scale(batch_norm))
    return {.foldable = {}, .already = true, .text = "already, into " + folded_layer_name(batch_norm)};
  Foldable found{.batch_norm = &batch_norm, .layer = nullptr, .between = {}};
  std::string text = why_not(graph, found, scope);
  if (!text.empty()) return {.foldable = {}, .already = false, .text = std::move(text)};
  return {.foldable = std::move(found), .already = false, .text = {}};
}

}  // namespace miniqat::quantize
