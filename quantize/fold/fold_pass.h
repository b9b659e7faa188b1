#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/fold/folded_layer.h"

namespace miniqat::quantize {

/// The nodes under this scope; "" for all.
struct Scope {
  std::string name = {};

  bool has(const Node& node) const { return in_scope(node.name(), name); }
  /// The reason that others are left alone.
  std::string outside() const;
};

/// The options of folding, as in RewriteOptions (rewrite/rewrite_options.h).
struct FoldOptions {
  std::optional<std::int64_t> freeze_bn_delay = {};
  BnFold bn_fold = BnFold::kTf;
  Scope scope = {};
};

/// What became of a batch norm.
struct BatchNormReport {
  std::string batch_norm;
  /// Now or before.
  bool folded = false;
  /// Into which layer, or why not.
  std::string text;
  /// The batch norm was spelled out in primitive ops and took the moments of its input: its moving statistics start
  /// anew.
  bool fresh_statistics = false;
  /// How a batch norm that is still there is folded, whether it trains, and whether its statistics freeze one day.
  std::optional<BnFold> folding = {};
  bool trains = false;
  bool freezes = false;
};

/// Folds batch norms, also those spelled out in primitive ops (spelled_out_batch_norm.h), into the Conv2D,
/// DepthwiseConv2d or MatMul before them, in place. Identity may lie in between and is removed. BatchToSpaceND or a
/// Reshape that keeps the channels may lie in between, but only one of these. A batch norm that cannot be folded stays
/// a BatchNorm, in evaluation a product and a sum for each channel, and gets options.freeze_bn_delay, as all do without
/// a freeze_delay of their own. Folding twice changes nothing.
///
/// With ctx the layer's scope, and sigma_b and sigma_m from the batch's and the moving variance:
/// - for training, BnFold::kTf: see FoldedLayer (folded_layer.h). Nodes ctx/BatchNorm_Fold, ctx/batch_norm_correction,
///   ctx/correction_mult, ctx/mul_fold, <layer>_Fold, ctx/post_conv_mul, ctx/correction_add, ctx/add_fold. The original
///   layer and batch norm stay for the batch's statistics.
/// - for training, BnFold::kSingle: ctx/mul_fold = weights * s, <layer>_Fold, ctx/post_conv_mul = output / s, then the
///   batch norm itself. s is from ctx/batch_norm_scale, a BatchNormScale.
/// - BnFold::kLate, for training and evaluation: the batch norm is marked (BatchNormAttributes::folds_late), and
///   Identity before it goes.
/// - otherwise for evaluation, and where a batch norm trains with moving statistics only:
///   ctx/mul_fold = weights * gamma / sigma_m, <layer>_Fold, ctx/add_fold by beta - mean_m * gamma / sigma_m.
/// A name that is taken gets a number.
std::vector<BatchNormReport> fold_batch_norms(Graph& graph, const FoldOptions& options, bool is_training);

/// A batch norm that was folded before, and how.
struct FoldedBefore {
  std::string batch_norm;
  BnFold folding = BnFold::kTf;
};
/// The folded batch norms that are still there in a graph.
std::vector<FoldedBefore> folded_batch_norms(const Graph& graph);

/// Turns the result of fold_batch_norms for training into its result for evaluation. Late folding gives the same in
/// both.
void unfold_corrections(Graph& graph);

}  // namespace miniqat::quantize
