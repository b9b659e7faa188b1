#include "training/settings/rewrite_settings.h"

#include <algorithm>
#include <set>

#include "core/files/files.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/layer_patterns.h"
#include "training/settings/usage_error.h"
#include "training/task/task.h"

namespace miniqat::training {
namespace {

std::string value_of(const std::string& setting, const RewriteSettings& settings) {
  std::string text;
  RewriteSettings::visit([&](const char* name, auto access, const char*) {
    const Json value = field_to_json(access(settings));
    if (name == setting && !value.is_boolean())
      text = " " + (value.is_string() ? value.get<std::string>() : value.dump());
  });
  return text;
}

/// Whether a setting differs from the usual one: nobody can tell which values of a config.json were chosen.
bool is_unusual(const std::string& setting, const RewriteSettings& settings, const RewriteSettings& usual) {
  bool unusual = false;
  RewriteSettings::visit([&](const char* name, auto access, const char*) {
    unusual = unusual || (name == setting && access(settings) != access(usual));
  });
  return unusual;
}

}  // namespace

void load_layer_bits(RewriteSettings& settings) {
  if (settings.bits_config.empty()) return;
  const std::string text = read_large_file(settings.bits_config);
  settings.layer_bits = as_usage([&] { return quantize::layer_bits_from_json(text, settings.bits_config); });
}

quantize::RangeChoice ranges_for(quantize::RangeChoice ranges, const Task& task) {
  return ranges == quantize::RangeChoice::kByTask && !task.answers_numbers ? quantize::RangeChoice::kAuto : ranges;
}

RewriteSettings rewrite_for(const RewriteSettings& settings, const Task& task, const datasets::Dataset& data) {
  constexpr std::int64_t kBitsOfNumbers = 8;
  RewriteSettings own = settings;
  own.ranges = ranges_for(own.ranges, task);
  for (quantize::LayerBits& layer : own.layer_bits)
    if (layer.ranges) layer.ranges = ranges_for(*layer.ranges, task);
  if (data.has_pictures()) return own;
  own.quantize_input = true;
  if (!own.input_bits) own.input_bits = kBitsOfNumbers;
  return own;
}

void require_as_asked(const quantize::RewriteReport& report, const RewriteSettings& settings,
                      const RewriteSettings& usual, const std::vector<std::string>& given, const std::string& source) {
  const auto asked = [&](const quantize::SettingConflict& conflict) {
    return std::ranges::count(given, conflict.setting) > 0 || is_unusual(conflict.setting, settings, usual);
  };
  const auto first = std::ranges::find_if(report.conflicts, asked);
  if (first == report.conflicts.end()) return;
  const auto others = std::ranges::count_if(report.conflicts, asked) - 1;
  const std::string flag = flag_of(first->setting);
  throw UsageError(concat(flag, value_of(first->setting, settings), ": ", source,
                          " was rewritten before: ", first->text, others > 0 ? concat(" (and ", others, " more)") : "",
                          "; a rewritten graph keeps its quantizers: start from the float graph, or leave ", flag,
                          " out"));
}

void require_scope(const Graph& graph, const std::string& scope, const std::string& source) {
  const auto nodes = graph.nodes();
  if (std::ranges::any_of(nodes, [&](const Node* node) { return in_scope(node->name(), scope); })) return;
  std::set<std::string> scopes;
  for (const Node* node : nodes)
    for (std::string outer = scope_of(node->name()); !outer.empty() && scopes.insert(outer).second;)
      outer = scope_of(outer);
  const std::vector<std::string> known(scopes.begin(), scopes.end());
  throw UsageError(
      concat("--scope ", quote(scope), ": no node of ", source, " is in that scope", did_you_mean(scope, known)));
}

void require_quantizers(const Graph& graph, const std::string& scope, const std::string& model,
                        const std::string& advice) {
  if (!quantize::quantization_of(graph).is_float()) return;
  fail("nothing in ", model, " was quantized", scope.empty() ? "" : concat(", no layer is in scope ", quote(scope)),
       "; `miniqat rewrite --report` says why", advice);
}

}  // namespace miniqat::training
