#include "quantize/fold/folded_layer.h"

#include <algorithm>
#include <array>

#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {
namespace {

constexpr std::array<std::string_view, 1> kReshape = {layers::Reshape::kType};

/// The only reader of a tensor, looking through Reshape, if it is of that type; null otherwise.
Node* only_reader(Output tensor, std::string_view type) {
  std::span<const Use> uses = tensor.node->uses(tensor.index);
  while (uses.size() == 1 && uses.front().node->as<layers::Reshape>()) uses = uses.front().node->uses();
  return uses.size() == 1 && uses.front().node->type() == type ? uses.front().node : nullptr;
}

/// The operand of a binary op that is not `tensor` (looking through Reshape); a null node when neither is.
Output other_operand(const Node& node, Output tensor) {
  for (const int i : {0, 1})
    if (source_through(node.input(i), kReshape) == tensor) return node.input(1 - i);
  return {};
}

template <class Layer>
bool both(const Node& a, const Node& b) {
  return a.as<Layer>() && b.as<Layer>() && *a.as<Layer>() == *b.as<Layer>();
}

bool same_layer(const Node& a, const Node& b) {
  return both<layers::Conv2d>(a, b) || both<layers::DepthwiseConv2d>(a, b) || both<layers::MatMul>(a, b);
}

Node* find_reader(Output tensor, std::string_view type) {
  for (const Use& use : tensor.node->uses(tensor.index))
    if (use.node->type() == type) return use.node;
  return nullptr;
}

bool same_attributes(const FoldedLayer& folded) {
  const auto& norm = *folded.batch_norm->as<layers::BatchNorm>();
  const auto& correction = *folded.correction->as<BatchNormCorrection>();
  return folded.fold->as<BatchNormFold>()->epsilon == norm.epsilon && correction.epsilon == norm.epsilon &&
         correction.freeze_delay == norm.freeze_delay;
}

/// The batch norm normalises just what the folded layer computes, with the parameters that were folded, and freezes
/// together with the correction.
bool agrees(const FoldedLayer& folded) {
  if (!same_attributes(folded)) return false;
  const Node& norm = *folded.batch_norm;
  const Node& original = *source_through(norm.input(0), OpRole::kBeforeBatchNorm).node;
  if (!same_layer(original, *folded.layer) || original.input(1) != folded.weights ||
      original.input(0) != folded.layer->input(0))
    return false;
  const std::array<Output, 4> folded_inputs = {norm.input(1), norm.input(2), norm.output(1), norm.output(2)};
  const std::array<Output, 5> corrected_inputs = {norm.input(1), norm.output(1), norm.output(2), norm.input(3),
                                                  norm.input(4)};
  return std::ranges::equal(folded.fold->inputs(), folded_inputs) &&
         std::ranges::equal(folded.correction->inputs(), corrected_inputs);
}

}  // namespace

std::span<const std::string_view> names_of(BnFold) {
  static constexpr std::array<std::string_view, 3> kNames = {"tf", "single", "late"};
  return kNames;
}

std::optional<FoldedLayer> find_folded_layer(const Node& correction) {
  FoldedLayer folded;
  folded.correction = correction.output().node;
  if (!correction.as<BatchNormCorrection>()) return std::nullopt;
  folded.batch_norm = correction.input(2).node;
  folded.fold = find_reader(correction.input(2), BatchNormFold::kType);
  if (!folded.batch_norm->as<layers::BatchNorm>() || folded.fold == nullptr) return std::nullopt;

  folded.correction_mult = only_reader(correction.output(0), layers::Mul::kType);
  folded.mul_fold = only_reader(folded.fold->output(0), layers::Mul::kType);
  folded.post_conv_mul = only_reader(correction.output(1), layers::Mul::kType);
  folded.correction_add = only_reader(correction.output(2), layers::Add::kType);
  folded.add_fold = only_reader(folded.fold->output(1), layers::Add::kType);
  for (const Node* node :
       {folded.correction_mult, folded.mul_fold, folded.post_conv_mul, folded.correction_add, folded.add_fold})
    if (node == nullptr) return std::nullopt;

  folded.weights = other_operand(*folded.correction_mult, correction.output(0));
  folded.layer_output = other_operand(*folded.post_conv_mul, correction.output(1));
  const bool in_a_row = folded.weights.node != nullptr && folded.layer_output.node != nullptr &&
                        other_operand(*folded.mul_fold, folded.fold->output(0)) == folded.correction_mult->output() &&
                        other_operand(*folded.correction_add, correction.output(2)) == folded.post_conv_mul->output() &&
                        other_operand(*folded.add_fold, folded.fold->output(1)) == folded.correction_add->output();
  if (!in_a_row) return std::nullopt;

  folded.layer = source_through(folded.layer_output, OpRole::kBeforeBatchNorm).node;
  if (!is_layer(*folded.layer) ||
      source_through(folded.layer->input(1), kQuantizerOrIdentity) != folded.mul_fold->output() || !agrees(folded))
    return std::nullopt;
  return folded;
}

bool quantizes_weights(const FoldedLayer& folded, std::int64_t quantization_step) {
  Output tensor = folded.layer->input(1);
  for (; is_one_of(tensor.node->type(), kQuantizerOrIdentity); tensor = tensor.node->input(0)) {
    const auto* quantizer = tensor.node->as<FakeQuant>();
    if (quantizer != nullptr && quantizer->quantizes(quantization_step)) return true;
  }
  return false;
}

Output scaling_variance(Output weights) {
  if (!weights.node->as<layers::Mul>()) return {};
  for (const Output& factor : weights.node->inputs()) {
    const Output source = source_through(factor, kReshape);
    if (source.index != 0) continue;
    if (source.node->as<BatchNormScale>()) return source.node->input(1);
    if (!source.node->as<BatchNormFold>()) continue;
    const Output variance = source.node->input(3);
    return variance.node->as<layers::BatchNorm>() ? variance.node->input(4) : variance;
  }
  return {};
}

Node* find_weight_scale(const Node& batch_norm) {
  if (!batch_norm.as<layers::BatchNorm>()) return nullptr;
  const Node& product = *batch_norm.input(0).node;
  if (!product.as<layers::Mul>()) return nullptr;
  for (const Output& factor : product.inputs())
    if (factor.node->as<BatchNormScale>() && factor.index == 1) return factor.node;
  return nullptr;
}

bool gives_statistics_only(const Node& batch_norm) {
  return batch_norm.as<layers::BatchNorm>() && batch_norm.uses(0).empty() &&
         find_reader(batch_norm.output(2), BatchNormFold::kType) != nullptr;
}

bool is_folded_late(const Node& node) {
  const auto* norm = node.as<layers::BatchNorm>();
  return norm != nullptr && norm->folds_late;
}

std::optional<BnFold> folding_of(const Node& batch_norm) {
  if (is_folded_late(batch_norm)) return BnFold::kLate;
  if (find_weight_scale(batch_norm) != nullptr) return BnFold::kSingle;
  return gives_statistics_only(batch_norm) ? std::optional(BnFold::kTf) : std::nullopt;
}

}  // namespace miniqat::quantize
