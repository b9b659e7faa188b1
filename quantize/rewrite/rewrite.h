#pragma once

#include <string>

#include "core/graph/graph.h"
#include "quantize/rewrite/rewrite_options.h"
#include "quantize/rewrite/rewrite_report.h"

namespace miniqat::quantize {

/// A graph for evaluation cannot become one for training again: its batch norms are folded and its delays gone. Throws
/// Error naming the first quantizer that was turned to evaluation, after `source` (the graph's file, if it has one),
/// unless its range is "fixed", which no step changes anyway.
void require_observing(const Graph& graph, const std::string& source = {});

/// Rewrites `graph` in place for training with simulated quantization, in the manner of tf.contrib.quantize's function
/// of that name: folds batch norms (fold/fold_pass.h), then inserts quantizers (decide.h). Works on
/// structure, never on names. Idempotent: a second call inserts nothing. Ends in Graph::verify(). Throws Error for
/// options out of range, what require_observing() throws and, with `strict`, for a scope without a layer and for layers
/// with an unquantized edge (naming each); the graph is then unchanged.
RewriteReport create_training_graph(Graph& graph, const RewriteOptions& options = {});

/// Turns the quantizers and batch norms of a graph to evaluation: stored ranges and statistics, no observers, no delay.
/// Turns the result of create_training_graph() on a float graph into that of create_eval_graph() with the same options.
void turn_to_evaluation(Graph& graph);

/// Rewrites a graph for evaluation, as create_training_graph() does for training. A graph that was rewritten before is
/// turned first.
RewriteReport create_eval_graph(Graph& graph, const RewriteOptions& options = {});

}  // namespace miniqat::quantize
