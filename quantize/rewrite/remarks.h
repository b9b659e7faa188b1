#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/decide.h"
#include "quantize/rewrite/rewrite_report.h"

namespace miniqat::quantize {

/// RewriteReport::remarks about options without effect, and patterns of layer_bits. `batch_norms`: what folding said.
std::vector<std::string> remarks_on(const Decisions& decisions, const std::vector<BatchNormReport>& batch_norms);

/// RewriteReport::warnings.
std::vector<std::string> warnings_about(const Decisions& decisions, const std::vector<BatchNormReport>& batch_norms);

/// Differences between an earlier rewrite, which folded these batch norms, and what was decided now. The graph has the
/// quantizers of both; those of these names are new. Things that only users make (a quantizer with a range of another
/// kind than the rewrite's) are not compared, and neither are settings without a meaning in this graph, for training or
/// evaluation. A scope is contradicted by quantizers outside of it when this rewrite has inserted none: scope after
/// scope may be rewritten with settings of its own.
std::vector<SettingConflict> conflicts_with(const std::vector<FoldedBefore>& batch_norms, const Graph& graph,
                                            const Decisions& decisions, const std::vector<std::string>& inserted);

}  // namespace miniqat::quantize
