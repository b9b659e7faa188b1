#include "core/profile_report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;
using Row = Profile::Part;

constexpr auto kForward = static_cast<std::size_t>(ProfilePhase::kForward);
constexpr auto kBackward = static_cast<std::size_t>(ProfilePhase::kBackward);

double milliseconds(Profile::Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

/// Empty for nothing, so that tables show where time goes and not where it doesn't.
std::string cell(Profile::Duration time, std::int64_t steps) {
  if (time == Profile::Duration{}) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", milliseconds(time) / static_cast<double>(steps));
  return text;
}

double share(Profile::Duration time, const Profile& profile) {
  return 100 * milliseconds(time) / std::max(milliseconds(profile.total()), 1e-9);
}

/// Rows under their heads; the type's column is left out where the rows are types themselves.
std::string table(std::vector<Row> rows, const Profile& profile, std::string head, bool with_type) {
  std::ranges::stable_sort(rows, std::greater<>(), &Row::total);
  std::size_t width = head.size();
  std::size_t type_width = 2;
  for (const Row& row : rows) {
    width = std::max(width, row.name.size());
    type_width = std::max(type_width, row.type.size());
  }
  const auto start = [&](std::string name, std::string type) {
    name.resize(width, ' ');
    type.resize(type_width, ' ');
    return with_type ? name + "  " + type : name;
  };
  char cells[128];
  std::snprintf(cells, sizeof cells, "  %10s  %11s  %9s  %6s  %8s\n", "forward ms", "backward ms", "other ms", "share",
                "calls");
  std::string text = start(std::move(head), "op") + cells;
  for (const Row& row : rows) {
    if (row.calls == 0) continue;
    const Profile::Duration other = row.total() - row.time[kForward] - row.time[kBackward];
    std::snprintf(cells, sizeof cells, "  %10s  %11s  %9s  %5.1f%%  %8lld\n",
                  cell(row.time[kForward], profile.steps()).c_str(), cell(row.time[kBackward], profile.steps()).c_str(),
                  cell(other, profile.steps()).c_str(), share(row.total(), profile), static_cast<long long>(row.calls));
    text += start(row.name, row.type) + cells;
  }
  return text;
}

std::vector<Row> by_type(const Profile& profile) {
  std::map<std::string, Row> sums;
  for (const Row& part : profile.parts()) {
    Row& sum = sums[part.type];
    sum.name = part.type;
    sum.calls += part.calls;
    for (std::size_t phase = 0; phase < kProfilePhases; ++phase) sum.time[phase] += part.time[phase];
  }
  std::vector<Row> rows;
  for (const auto& [type, sum] : sums) rows.push_back(sum);
  return rows;
}

std::string phase_table(const Profile& profile) {
  std::string text = "phase            ms   share\n";
  const auto phases = profile.phases();
  for (std::size_t phase = 0; phase < kProfilePhases; ++phase) {
    char line[96];
    std::snprintf(line, sizeof line, "%-12s %8.3f  %5.1f%%\n",
                  std::string(name_of(static_cast<ProfilePhase>(phase))).c_str(),
                  milliseconds(phases[phase]) / static_cast<double>(profile.steps()), share(phases[phase], profile));
    text += line;
  }
  return text;
}

Json event(const std::string& name, std::string_view category, Profile::Time origin, Profile::Time begin,
           Profile::Time end) {
  const auto microseconds = [](Profile::Duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  };
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", microseconds(begin - origin)},
          {"dur", microseconds(end - begin)},
          {"pid", 1},
          {"tid", 1}};
}

}  // namespace

std::string profile_table(const Profile& profile) {
  if (profile.steps() == 0) return "profile: no step was made\n";
  char head[160];
  std::snprintf(head, sizeof head, "profile: %.3f ms a step, mean of %lld steps%s\n\n",
                milliseconds(profile.total()) / static_cast<double>(profile.steps()),
                static_cast<long long>(profile.steps()),
                std::ssize(profile.kept()) > Profile::kWarmUpSteps
                    ? concat(" (all but the first ", Profile::kWarmUpSteps, ")").c_str()
                    : " (the first ones, slower than those to follow)");
  return head + table({profile.parts().begin(), profile.parts().end()}, profile, "node", true) + "\n" +
         table(by_type(profile), profile, "op", false) + "\n" + phase_table(profile);
}

std::string profile_trace(const Profile& profile) {
  // An event a line: small, and fit for grep.
  std::string lines;
  const auto add = [&lines](const Json& json) { lines += (lines.empty() ? "" : ",\n") + json.dump(); };
  const auto& steps = profile.kept();
  Profile::Time origin{};
  if (!steps.empty()) {
    origin = steps.front().begin;
    if (!steps.front().events.empty()) origin = std::min(origin, steps.front().events.front().begin);
  }
  for (const Profile::Step& step : steps) {
    add(event(concat("step ", step.number), "step", origin, step.begin, step.end));
    for (const Profile::Event& part : step.events) {
      const Row& row = profile.parts()[part.part];
      Json json = event(row.name, name_of(part.phase), origin, part.begin, part.end);
      json["args"] = {{"op", row.type}};
      add(json);
    }
  }
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + lines + "\n]}\n";
}

}  // namespace miniqat
