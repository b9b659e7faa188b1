#include "quantize/rewrite/rewrite.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/graph/losses.h"
#include "core/graph/reach.h"
#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/rewrite/decide.h"
#include "quantize/rewrite/explain.h"
#include "quantize/rewrite/remarks.h"

namespace miniqat::quantize {
namespace {

void turn_node_to_evaluation(Graph& graph, Node& node) {
  if (const auto* quantizer = node.as<FakeQuant>()) {
    FakeQuantAttributes attributes = *quantizer;
    if (!attributes.is_training && attributes.delay == 0) return;
    attributes.is_training = false;
    attributes.delay = 0;
    graph.replace_op(node, FakeQuant::make(attributes));
  } else if (const auto* batch_norm = node.as<layers::BatchNorm>()) {
    layers::BatchNormAttributes attributes = *batch_norm;
    if (!attributes.is_training) return;
    attributes.is_training = false;
    attributes.freeze_delay = -1;
    graph.replace_op(node, layers::BatchNorm::make(attributes));
  }
}

/// Layers that reach no output are not quantized.
void skip_unused(const Graph& graph, LayerSearch& layers) {
  const std::unordered_set<const Node*> unused = unused_nodes(graph);
  std::erase_if(layers.matches, [&](const LayerMatch& match) {
    if (!unused.contains(match.layer)) return false;
    layers.skips.push_back({.layer = match.layer, .reason = "reaches no output", .is_unused = true});
    return true;
  });
}

/// What the quantizer's input was, its output is for all but losses that take it as their target: a network is measured
/// by the numbers that were given.
void take_all_but_targets(Graph& graph, Output tensor, Node& quantizer) {
  std::vector<Use> targets;
  for (const Use& use : tensor.node->uses(tensor.index))
    if (leads_to_targets(use)) targets.push_back(use);
  graph.reroute(tensor, quantizer.output());
  if (!targets.empty()) graph.reroute(quantizer.output(), tensor, targets);
}

/// Returns the names of the quantizers that were inserted. A name that is taken gets a number.
std::vector<std::string> apply(Graph& graph, Decisions& decisions) {
  std::vector<std::string> inserted;
  const auto is_taken = [&](const std::string& name) {
    const auto is_there = [&](const char* part) { return graph.find(name + part) != nullptr; };
    return std::ranges::any_of(std::array{"", "/min", "/max", "/num_updates", "/num_dampened"}, is_there);
  };
  // No smaller number is free.
  std::unordered_map<std::string, int> next_number;
  const auto free_name = [&](const std::string& name) {
    std::string candidate = name;
    while (is_taken(candidate)) candidate = concat(name, "_", ++next_number[name]);
    return candidate;
  };
  const auto taken_by = [](const Use& use) { return use.node->input(use.input); };
  for (QuantizerRow& row : decisions.quantizers) {
    if (!row.node) {
      const Output tensor = row.takes_all ? row.tensor : taken_by(row.readers.front());
      inserted.push_back(free_name(row.name));
      row.node = fake_quant(graph, inserted.back(), tensor, row.attributes, row.initial, row.channel_axes).node;
      if (row.takes_all) take_all_but_targets(graph, tensor, *row.node);
    }
    for (auto first = row.readers.begin(); first != row.readers.end();) {
      const Output from = taken_by(*first);
      const auto last = std::find_if(first, row.readers.end(), [&](const Use& use) { return taken_by(use) != from; });
      graph.reroute(from, row.node->output(), std::span(first, last));
      first = last;
    }
  }
  return inserted;
}

void require_quantized(const Graph& graph, const Decisions& decisions, const RewriteReport& report) {
  if (!decisions.missed_scope.empty()) fail("`strict`: ", decisions.missed_scope);
  std::string refused;
  for (const std::string& edge : unquantized_edges(graph, decisions, report))
    refused += (refused.empty() ? "" : "; ") + edge;
  if (!refused.empty()) fail("`strict`: left float: ", refused);
}

RewriteReport rewrite(Graph& graph, const RewriteOptions& options, bool is_training) {
  options.check();
  if (is_training) require_observing(graph);
  GraphRollback rollback(graph);
  // Find.
  const std::string still = is_training ? note_on_still_batch_norms(graph) : "";
  const std::vector<FoldedBefore> before = folded_batch_norms(graph);
  if (!is_training) turn_to_evaluation(graph);
  std::vector<BatchNormReport> batch_norms = fold_batch_norms(graph, options.folding(), is_training);
  LayerSearch layers = find_layers(graph, options.scope);
  skip_unused(graph, layers);

  // Decide and apply.
  Decisions decisions = decide(graph, std::move(layers), options, is_training);
  std::vector<std::string> inserted = apply(graph, decisions);
  graph.verify();

  // Explain.
  RewriteReport report = report_rewrite(graph, decisions);
  report.inserted = std::move(inserted);
  report.conflicts = conflicts_with(before, graph, decisions, report.inserted);
  report.warnings = warnings_about(decisions, batch_norms);
  for (std::string note : {note_on_float_edges(graph, report), note_on_unused_layers(graph), still})
    if (!note.empty()) report.remarks.push_back(std::move(note));
  std::ranges::move(remarks_on(decisions, batch_norms), std::back_inserter(report.remarks));
  describe_unfolded(graph, decisions, batch_norms);
  report.batch_norms = std::move(batch_norms);
  if (decisions.strict) require_quantized(graph, decisions, report);
  rollback.commit();
  return report;
}

}  // namespace

void require_observing(const Graph& graph, const std::string& source) {
  for (const Node* node : graph.nodes()) {
    const auto* quantizer = node->as<FakeQuant>();
    if (!quantizer || quantizer->is_training || !traits_of(quantizer->range).changes()) continue;
    fail(
        source.empty() ? "" : source + ": ", describe(*node),
        " was rewritten for evaluation (is_training is false): its range would stay as it is, and there is no way back from an evaluation graph; rewrite the graph that it came from");
  }
}

RewriteReport create_training_graph(Graph& graph, const RewriteOptions& options) {
  return rewrite(graph, options, true);
}

void turn_to_evaluation(Graph& graph) {
  unfold_corrections(graph);
  for (Node* node : graph.nodes()) turn_node_to_evaluation(graph, *node);
}

RewriteReport create_eval_graph(Graph& graph, const RewriteOptions& options) { return rewrite(graph, options, false); }

}  // namespace miniqat::quantize
