#include "training/settings/earlier_rewrite.h"

#include <algorithm>

#include "core/text/json.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

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

/// Of a config.json nobody can tell which values were chosen: those that differ from the usual ones.
bool is_unusual(const std::string& setting, const RewriteSettings& settings, const RewriteSettings& usual) {
  bool unusual = false;
  RewriteSettings::visit([&](const char* name, auto access, const char*) {
    unusual = unusual || (name == setting && access(settings) != access(usual));
  });
  return unusual;
}

}  // namespace

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

}  // namespace miniqat::training
