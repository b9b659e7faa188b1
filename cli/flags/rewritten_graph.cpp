#include "cli/flags/rewritten_graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/counted.h"
#include "core/graph/graph_json.h"
#include "quantize/quantization.h"
#include "training/model_source.h"

namespace miniqat::cli {

using namespace training;

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

}  // namespace

void require_as_asked(const quantize::RewriteReport& report, const RewriteSettings& settings,
                      const std::function<bool(const std::string&)>& was_asked, const std::string& source) {
  const auto asked = [&](const quantize::SettingConflict& conflict) { return was_asked(conflict.setting); };
  const auto first = std::ranges::find_if(report.conflicts, asked);
  if (first == report.conflicts.end()) return;
  const auto others = std::ranges::count_if(report.conflicts, asked) - 1;
  const std::string flag = flag_of(first->setting);
  throw UsageError(concat(flag, value_of(first->setting, settings), ": ", source,
                          " was rewritten before: ", first->text, others > 0 ? concat(" (and ", others, " more)") : "",
                          "; a rewritten graph keeps its quantizers: start from the float graph, or leave ", flag,
                          " out"));
}

void require_trainable_as_asked(const TrainSettings& settings,
                                const std::function<bool(const std::string&)>& was_asked) {
  if (!is_graph_file(settings.model)) return;
  Graph graph = read_graph(settings.model);
  const quantize::Quantization quantization = quantize::quantization_of(graph);
  if (quantization.is_float()) return;
  if (settings.float_only)
    throw UsageError(concat("--float: ", settings.model, " is quantized already (", quantization.label(), ", ",
                            counted(quantization.quantizers, "quantizer"),
                            "); leave --float out, or give the float graph"));
  quantize::require_observing(graph, settings.model);
  require_as_asked(quantize::create_training_graph(graph, settings.rewrite), settings.rewrite, was_asked,
                   settings.model);
}

std::string wanted_quantization(const TrainSettings& settings) {
  if (is_graph_file(settings.model)) {
    const quantize::Quantization quantization = quantize::quantization_of(read_graph(settings.model));
    if (!quantization.is_float()) return quantization.label();
  }
  return quantization_label(settings);
}

}  // namespace miniqat::cli
