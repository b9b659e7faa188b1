#include "quantize/rewrite/rewrite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <unordered_set>

#include "core/error.h"
#include "core/graph/graph_rollback.h"
#include "core/graph/op_queries.h"
#include "core/graph/reach.h"
#include "core/text/exact.h"
#include "core/text/quote.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/fold_pass.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/rewrite/insert_fake_quant.h"
#include "quantize/rewrite/layer_bits_notes.h"
#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/rewrite_conflicts.h"
#include "quantize/rewrite/rewrite_report.h"

namespace miniqat::quantize {
namespace {

void check_bits(const char* option, std::int64_t bits) {
  if (bits < 2 || bits > 16) fail(option, " must be 2 to 16, not ", bits);
}

void check_steps(const char* option, std::int64_t steps) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (steps < 0 || steps > kMost) fail(option, " must be 0 to 2^40 steps, not ", steps);
}

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

bool no_layer_is_in(std::string_view scope, const std::vector<LayerSkip>& skips, const Verdicts& verdicts) {
  return verdicts.layers.empty() &&
         std::ranges::none_of(skips, [&](const LayerSkip& skip) { return in_scope(skip.layer->name(), scope); });
}

std::string remark_on_sums(const Verdicts& verdicts, const RewriteOptions& options) {
  if (!options.sums_bits) return "";
  if (verdicts.sums.empty()) return "`sums_bits` has no effect: there is no residual sum";
  if (options.widens_sums() || !options.layer_bits.empty()) return "";
  return concat("`sums_bits` has no effect: all activations have ", *options.sums_bits, " bits");
}

/// Options without effect on batch norms.
std::vector<std::string> remarks_on_folding(const std::vector<BatchNormReport>& batch_norms,
                                            const RewriteOptions& options, bool is_training) {
  std::vector<std::string> remarks;
  if (options.freeze_bn_delay && is_training && std::ranges::none_of(batch_norms, &BatchNormReport::freezes)) {
    const bool trains = std::ranges::any_of(batch_norms, &BatchNormReport::trains);
    remarks.emplace_back(trains ? "`freeze_bn_delay` has no effect on batch norms that were folded before"
                                : "`freeze_bn_delay` has no effect: no batch norm trains here");
  }
  const bool folds_so = std::ranges::count(batch_norms, std::optional(options.bn_fold), &BatchNormReport::folding) > 0;
  if (options.bn_fold == BnFold::kSingle && is_training && !folds_so)
    remarks.emplace_back("`bn_fold` single has no effect: there is no batch norm to fold for training");
  if (options.bn_fold == BnFold::kLate && !folds_so)
    remarks.emplace_back("`bn_fold` late has no effect: there is no batch norm to fold");
  return remarks;
}

/// Options without effect.
std::vector<std::string> remarks_on(const std::vector<BatchNormReport>& batch_norms,
                                    const std::vector<LayerSkip>& skips, const Verdicts& verdicts,
                                    const RewriteOptions& options, bool is_training) {
  std::vector<std::string> remarks = remarks_on_folding(batch_norms, options, is_training);
  if (options.float_pools && verdicts.float_pools == 0)
    remarks.emplace_back("`float_pools` has no effect: there is no AvgPool, Mean or Concat");
  if (std::string remark = remark_on_sums(verdicts, options); !remark.empty()) remarks.push_back(std::move(remark));
  if (no_layer_is_in(options.scope, skips, verdicts) && !skips.empty())
    remarks.emplace_back(concat("no layer is in scope ", quote(options.scope)));
  for (std::string& note : notes_on_layer_bits(skips, verdicts, options)) remarks.push_back(std::move(note));
  return remarks;
}

std::vector<std::string> warnings_about(const RewriteOptions& options, const std::vector<BatchNormReport>& batch_norms,
                                        bool is_training) {
  std::vector<std::string> warnings;
  if (is_training && options.freeze_bn_delay && *options.freeze_bn_delay < options.quant_delay)
    warnings.push_back(
        concat("batch norm freezes at step ", *options.freeze_bn_delay, ", before quantization begins at step ",
               options.quant_delay,
               ": its statistics will be those of the float network, and never follow the quantized one"));
  const auto fresh = std::ranges::count(batch_norms, true, &BatchNormReport::fresh_statistics);
  if (fresh > 0)
    warnings.push_back(concat(fresh, fresh == 1 ? " batch norm" : " batch norms",
                              " in primitive ops had no moving statistics; ",
                              is_training ? "train a few hundred steps before you evaluate"
                                          : "evaluation needs those of a training run of the rewritten graph"));
  return warnings;
}

void require_quantized(const Graph& graph, const std::vector<LayerSkip>& skips, const Verdicts& verdicts,
                       const RewriteOptions& options, const RewriteReport& report) {
  if (!options.scope.empty() && no_layer_is_in(options.scope, skips, verdicts))
    fail("`strict`: no layer is in scope ", quote(options.scope));
  std::string refused;
  for (const std::string& edge : unquantized_edges(graph, skips, verdicts, options, report))
    refused += (refused.empty() ? "" : "; ") + edge;
  if (!refused.empty()) fail("`strict`: left float: ", refused);
}

/// A batch norm has a factor for each channel, which takes a scale for each.
void require_channel_scales(const Verdicts& verdicts, const RewriteOptions& options) {
  if (options.bn_fold != BnFold::kLate) return;
  for (const LayerVerdict& layer : verdicts.layers)
    if (const Node* bias = layer.match->bias;
        bias && is_folded_late(*bias) && !layer.settings.weights.attributes.per_channel)
      fail(describe(*layer.match->layer), " has one range for all channels (bits_config), but ", describe(*bias),
           ", which is folded late, needs one for each");
}

RewriteReport rewrite(Graph& graph, const RewriteOptions& options, bool is_training) {
  options.check();
  if (is_training) require_observing(graph);
  GraphRollback rollback(graph);
  const std::string still = is_training ? note_on_still_batch_norms(graph) : "";
  const DoneBefore before(graph);
  if (!is_training) turn_to_evaluation(graph);
  std::vector<BatchNormReport> batch_norms = fold_batch_norms(graph, options.folding(), is_training);
  LayerSearch layers = find_layers(graph, options.scope);
  skip_unused(graph, layers);
  const Verdicts verdicts = insert_fake_quants(graph, layers.matches, options, is_training);
  require_channel_scales(verdicts, options);
  graph.verify();

  RewriteReport report = report_rewrite(graph, layers, verdicts, options);
  report.conflicts = before.conflicts(graph, verdicts, options, is_training);
  report.warnings = warnings_about(options, batch_norms, is_training);
  describe_unfolded(graph, verdicts, batch_norms);
  report.batch_norms = std::move(batch_norms);
  if (std::string note = note_on_float_edges(graph, report); !note.empty()) report.remarks.push_back(std::move(note));
  if (std::string note = note_on_unused_layers(graph); !note.empty()) report.remarks.push_back(std::move(note));
  if (!still.empty()) report.remarks.push_back(still);
  for (std::string& remark : remarks_on(report.batch_norms, layers.skips, verdicts, options, is_training))
    report.remarks.push_back(std::move(remark));
  if (options.strict) require_quantized(graph, layers.skips, verdicts, options, report);
  rollback.commit();
  return report;
}

}  // namespace

void RewriteOptions::check() const {
  check_bits("weight_bits", weight_bits);
  check_bits("activation_bits", activation_bits);
  if (logits_bits) check_bits("logits_bits", *logits_bits);
  if (ends_bits) check_bits("ends_bits", *ends_bits);
  if (sums_bits) check_bits("sums_bits", *sums_bits);
  if (sums_bits && *sums_bits < activation_bits)
    fail("sums_bits must be ", activation_bits, " or more, the bits of activations, not ", *sums_bits);
  check_steps("quant_delay", quant_delay);
  if (freeze_bn_delay) check_steps("freeze_bn_delay", *freeze_bn_delay);
  if (!std::isfinite(ema_decay) || ema_decay < 0 || ema_decay >= 1)
    fail("ema_decay must be in [0, 1), is ", exact(ema_decay));
  if (bn_fold == BnFold::kLate && !per_channel)
    fail("`bn_fold` late needs `per_channel`: gamma / sigma becomes part of the scale of each channel's weights");
  if (bn_fold == BnFold::kLate && scales == ScaleChoice::kPowerOfTwo)
    fail(
        "`bn_fold` late makes gamma / sigma part of the scales; with `scales` power-of-two these would be no powers of "
        "two");
  check_layer_bits(layer_bits, "bits_config");
  for (const LayerBits& bits : layer_bits) {
    if (bits.symmetric.value_or(symmetric) && !bits.symmetric_weights.value_or(true))
      fail("bits_config: pattern ", quote(bits.pattern),
           ": symmetric_weights cannot be false where symmetric, which includes the weights, is true");
    const int narrow = bits.activation_bits.value_or(activation_bits);
    if (bits.sums_bits.value_or(narrow) < narrow)
      fail("bits_config: pattern ", quote(bits.pattern), ": sums_bits must be ", narrow,
           " or more, the bits of activations, not ", *bits.sums_bits);
  }
}

std::optional<int> RewriteOptions::logits_width() const {
  constexpr int kUsual = 8;
  std::int64_t bits = logits_bits.value_or(ends_bits.value_or(activation_bits));
  if (!logits_bits && !ends_bits && traits_of(activation_range()).learned) bits = std::max(bits, std::int64_t{kUsual});
  return bits == activation_bits ? std::nullopt : std::optional(static_cast<int>(bits));
}

void require_observing(const Graph& graph, const std::string& source) {
  for (const Node* node : graph.nodes()) {
    const auto* quantizer = node->as<FakeQuant>();
    if (!quantizer || quantizer->is_training || !traits_of(quantizer->range).changes()) continue;
    fail(
        source.empty() ? "" : source + ": ", describe(*node),
        " was rewritten for evaluation (is_training is false): its range would stay as it is, and there is no way back "
        "from an evaluation graph; rewrite the graph that it came from");
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
