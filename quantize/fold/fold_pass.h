#pragma once

#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::quantize {

/// Folds batch norms, also those spelled out in primitive ops (spelled_out_batch_norm.h), into the Conv2D,
/// DepthwiseConv2d or MatMul before them, in place. In between may stand Identity, which goes, and BatchToSpaceND or a
/// Reshape that keeps the channels, but only one of these. Returns a line for every batch norm: folded into which
/// layer, or why not; one that cannot be folded stays as it is, but for options.freeze_bn_delay, which all get that
/// have no freeze_delay of their own. Folding twice changes nothing.
///
/// With ctx the layer's scope, and sigma_b and sigma_m from the batch's and the moving variance:
/// - for training, BnFold::kTf: see FoldedLayer (folded_layer.h). Nodes ctx/BatchNorm_Fold, ctx/batch_norm_correction,
///   ctx/correction_mult, ctx/mul_fold, <layer>_Fold, ctx/post_conv_mul, ctx/correction_add, ctx/add_fold. The original
///   layer and batch norm stay for the batch's statistics.
/// - for training, BnFold::kSingle: ctx/mul_fold = weights * s, <layer>_Fold, ctx/post_conv_mul = output / s, then the
///   batch norm itself; s from ctx/batch_norm_scale, a BatchNormScale.
/// - for evaluation, and where a batch norm trains with moving statistics only:
///   ctx/mul_fold = weights * gamma / sigma_m, <layer>_Fold, ctx/add_fold by beta - mean_m * gamma / sigma_m.
/// A name that is taken gets a number.
std::vector<MatchReport> fold_batch_norms(Graph& graph, const RewriteOptions& options, bool is_training);

/// How the line ends of a batch norm in primitive ops that took the moments of its input.
inline constexpr std::string_view kFreshStatistics = "; its moving statistics start anew, at 0 and 1";

/// Turns what fold_batch_norms made for training into what it makes for evaluation.
void unfold_corrections(Graph& graph);

}  // namespace miniqat::quantize
