#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/rewrite/decide.h"
#include "quantize/rewrite/rewrite_report.h"

namespace miniqat::quantize {

/// Describes a rewritten graph, consumers in topological order. Every edge is listed but those into FakeQuants: an edge
/// that carries a quantizer's output bears the name of the tensor before it. A MatchReport without a layer is a note on
/// the whole.
RewriteReport report_rewrite(const Graph& graph, const Decisions& decisions);

/// Adds to the lines about batch norms that were not folded where each is quantized, or why it is left float.
void describe_unfolded(const Graph& graph, const Decisions& decisions, std::vector<BatchNormReport>& batch_norms);

/// A sentence on the edges into layers that are left float; "" when there is none.
std::string note_on_float_edges(const Graph& graph, const RewriteReport& report);

/// A sentence on the BatchNorms of a graph to train that have is_training false, on purpose or left over from
/// evaluation; "" when there is none.
std::string note_on_still_batch_norms(const Graph& graph);

/// The refusals of `strict`, one text each: float edges into ops that compute in integers, and matched layers without a
/// quantizer on their output. The ops are layers in scope, the Adds of their bypasses, and other ops whose output is
/// quantized. Edges of parameters do not count.
std::vector<std::string> unquantized_edges(const Graph& graph, const Decisions& decisions, const RewriteReport& report);

}  // namespace miniqat::quantize
