#include "core/engine/profile_report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/text/json.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kForwardColumn = static_cast<std::size_t>(ProfilePhase::kForward);
constexpr auto kBackwardColumn = static_cast<std::size_t>(ProfilePhase::kBackward);

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

void add(Profile::Part& sum, const Profile::Part& row) {
  sum.calls += row.calls;
  for (std::size_t phase = 0; phase < kProfilePhases; ++phase) sum.time[phase] += row.time[phase];
}

/// The rows that take 99.5% of the time, or the first 25 of them, by time; the others are summed up in one.
std::vector<Profile::Part> largest(std::vector<Profile::Part> rows) {
  constexpr std::size_t kMost = 25;
  std::erase_if(rows, [](const Profile::Part& row) { return row.calls == 0; });
  std::ranges::stable_sort(rows, std::greater<>(), &Profile::Part::total);
  Profile::Duration all{}, shown{};
  for (const Profile::Part& row : rows) all += row.total();
  std::size_t count = 0;
  for (; count < std::min(kMost, rows.size()) && shown <= all * 995 / 1000; ++count) shown += rows[count].total();
  if (rows.size() - count < 2) return rows;
  Profile::Part rest{.name = concat("... ", rows.size() - count, " more"), .type = ""};
  for (std::size_t i = count; i < rows.size(); ++i) add(rest, rows[i]);
  rows.resize(count);
  rows.push_back(rest);
  return rows;
}

/// Rows under their heads; where they are types themselves with the calls in place of the types. (A node's calls would
/// say nothing: they are one forward and one backward.)
std::string table(std::vector<Profile::Part> rows, const Profile& profile, std::string head, bool of_types) {
  rows = largest(std::move(rows));
  std::size_t width = head.size();
  std::size_t type_width = 2;
  for (const Profile::Part& row : rows) {
    width = std::max(width, row.name.size());
    type_width = std::max(type_width, row.type.size());
  }
  const auto start = [&](std::string name, std::string type) {
    name.resize(width, ' ');
    type.resize(type_width, ' ');
    return of_types ? name : name + "  " + type;
  };
  char cells[128];
  std::snprintf(cells, sizeof cells, "  %10s  %11s  %9s  %6s%s\n", "forward ms", "backward ms", "other ms", "share",
                of_types ? "  calls a step" : "");
  std::string text = start(std::move(head), "op") + cells;
  for (const Profile::Part& row : rows) {
    const Profile::Duration other = row.total() - row.time[kForwardColumn] - row.time[kBackwardColumn];
    std::snprintf(cells, sizeof cells, "  %10s  %11s  %9s  %5.1f%%",
                  cell(row.time[kForwardColumn], profile.steps()).c_str(),
                  cell(row.time[kBackwardColumn], profile.steps()).c_str(), cell(other, profile.steps()).c_str(),
                  share(row.total(), profile));
    text += start(row.name, row.type) + cells;
    if (of_types) {
      std::snprintf(cells, sizeof cells, "  %12.4g",
                    static_cast<double>(row.calls) / static_cast<double>(profile.steps()));
      text += cells;
    }
    text += "\n";
  }
  return text;
}

std::vector<Profile::Part> by_type(const Profile& profile) {
  std::map<std::string, Profile::Part> sums;
  for (const Profile::Part& part : profile.parts()) {
    Profile::Part& sum = sums[part.type];
    sum.name = part.type;
    add(sum, part);
  }
  std::vector<Profile::Part> rows;
  rows.reserve(sums.size());
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
  std::snprintf(head, sizeof head, "profile: %.3f ms a step, mean of %lld step%s%s\n\n",
                milliseconds(profile.total()) / static_cast<double>(profile.steps()),
                static_cast<long long>(profile.steps()), profile.steps() == 1 ? "" : "s",
                std::ssize(profile.kept()) > Profile::kWarmUpSteps
                    ? concat(" (all but the first ", Profile::kWarmUpSteps, ")").c_str()
                    : " (the first ones, slower than those to follow)");
  return head + table({profile.parts().begin(), profile.parts().end()}, profile, "node", false) + "\n" +
         table(by_type(profile), profile, "op", true) + "\n" + phase_table(profile);
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
      const Profile::Part& row = profile.parts()[part.part];
      Json json = event(row.name, name_of(part.phase), origin, part.begin, part.end);
      json["args"] = {{"op", row.type}};
      add(json);
    }
  }
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + lines + "\n]}\n";
}

}  // namespace miniqat
