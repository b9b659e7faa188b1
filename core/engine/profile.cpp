#include "core/engine/profile.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"

namespace miniqat {
namespace {

constexpr std::array<std::string_view, kProfilePhases> kPhaseNames = {"forward", "backward", "optimizer", "loader wait",
                                                                      "other"};

}  // namespace

std::string_view name_of(ProfilePhase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

Profile::Duration Profile::Part::total() const { return std::accumulate(time.begin(), time.end(), Duration{}); }

std::size_t Profile::part(std::string_view name, std::string_view type) {
  const auto found = index_.find({name, type});
  if (found != index_.end()) return found->second;
  const Part& added = parts_.emplace_back(Part{std::string(name), std::string(type)});
  index_.emplace(std::pair<std::string_view, std::string_view>(added.name, added.type), parts_.size() - 1);
  return parts_.size() - 1;
}

void Profile::record(ProfilePhase phase, std::string_view name, std::string_view type, Time begin, Time end,
                     PartWork work) {
  open_.push_back({part(name, type), phase, begin, end, work});
}

void Profile::end_step(std::int64_t number, Time begin, Time end) {
  Step step{.number = number, .begin = begin, .end = end, .events = {}};
  if (kept_.size() == kKeptSteps) {
    // The memory of the oldest step is used again.
    step.events.swap(kept_.front().events);
    kept_.pop_front();
    step.events.clear();
  }
  step.events.swap(open_);
  if (++ended_ == kWarmUpSteps + 1) forget_sums();
  add_up(step);
  kept_.push_back(std::move(step));
}

void Profile::forget_sums() {
  steps_ = 0;
  total_ = {};
  for (Part& part : parts_) {
    part.time = {};
    part.work = {};
    part.calls = 0;
  }
}

void Profile::add_up(const Step& step) {
  ++steps_;
  total_ += step.end - step.begin;
  for (const Event& event : step.events) {
    Part& part = parts_[event.part];
    part.time[static_cast<std::size_t>(event.phase)] += event.end - event.begin;
    part.work[static_cast<std::size_t>(event.phase)] += event.work;
    ++part.calls;
    if (event.begin < step.begin) total_ += event.end - event.begin;
  }
}

std::array<Profile::Duration, kProfilePhases> Profile::phases() const {
  std::array<Duration, kProfilePhases> sums{};
  Duration rest = total_;
  for (const Part& part : parts_) {
    for (std::size_t phase = 0; phase < kProfilePhases; ++phase) sums[phase] += part.time[phase];
    rest -= part.total();
  }
  sums[static_cast<std::size_t>(ProfilePhase::kOther)] += rest;
  return sums;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr auto kForwardColumn = static_cast<std::size_t>(ProfilePhase::kForward);
constexpr auto kBackwardColumn = static_cast<std::size_t>(ProfilePhase::kBackward);

double milliseconds(Profile::Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

/// Empty for nothing, so that tables show where time goes and not where it doesn't.
std::string cell(Profile::Duration time, std::int64_t steps) {
  return time == Profile::Duration{} ? "" : formatted("%.3f", milliseconds(time) / static_cast<double>(steps));
}

double share(Profile::Duration time, const Profile& profile) {
  return 100 * milliseconds(time) / std::max(milliseconds(profile.total()), 1e-9);
}

/// A line of a table.
struct ReportRow : Profile::Part {
  /// The least time of its parts that have any work, and the time that these take.
  double least_ms = 0, worked_ms = 0;

  PartWork all_work() const {
    PartWork sum;
    for (const PartWork& one : work) sum += one;
    return sum;
  }
};

ReportRow row_of(const Profile::Part& part, const MachineRates& rates) {
  ReportRow row{part};
  for (std::size_t phase = 0; phase < kProfilePhases; ++phase) {
    const PartWork& work = part.work[phase];
    if (work.bytes == 0) continue;
    row.least_ms +=
        1e3 * std::max(2 * work.multiply_adds / rates.operations_per_second, work.bytes / rates.bytes_per_second);
    row.worked_ms += milliseconds(part.time[phase]);
  }
  return row;
}

void add(ReportRow& sum, const ReportRow& row) {
  sum.calls += row.calls;
  sum.least_ms += row.least_ms;
  sum.worked_ms += row.worked_ms;
  for (std::size_t phase = 0; phase < kProfilePhases; ++phase) {
    sum.time[phase] += row.time[phase];
    sum.work[phase] += row.work[phase];
  }
}

/// The rows that take 99.5% of the time, or the first 25 of them, by time; the others are summed up in one.
std::vector<ReportRow> largest(std::vector<ReportRow> rows) {
  constexpr std::size_t kMost = 25;
  std::erase_if(rows, [](const ReportRow& row) { return row.calls == 0; });
  std::ranges::stable_sort(rows, std::greater<>(), [](const ReportRow& row) { return row.total(); });
  Profile::Duration all{}, shown{};
  for (const ReportRow& row : rows) all += row.total();
  std::size_t count = 0;
  for (; count < std::min(kMost, rows.size()) && shown <= all * 995 / 1000; ++count) shown += rows[count].total();
  if (rows.size() - count < 2) return rows;
  ReportRow rest{{.name = concat("... ", rows.size() - count, " more"), .type = ""}};
  for (std::size_t i = count; i < rows.size(); ++i) add(rest, rows[i]);
  rows.resize(count);
  rows.push_back(rest);
  return rows;
}

/// Work a step and the share of what the machine allows; empty where nothing is counted.
std::string work_cells(const ReportRow& row, std::int64_t steps) {
  const PartWork work = row.all_work();
  if (work.bytes == 0) return "";
  const double each = static_cast<double>(steps);
  const std::string products = work.multiply_adds > 0 ? formatted("%.3f", 2e-9 * work.multiply_adds / each) : "";
  return formatted("  %8s  %8.2f  %11.2f", products.c_str(), 1e-6 * work.bytes / each,
                   row.least_ms / std::max(row.worked_ms, 1e-9));
}

/// Rows under their heads; where they are types themselves with the calls in place of the types. (A node's calls would
/// say nothing: they are one forward and one backward.)
std::string table(std::vector<ReportRow> rows, const Profile& profile, std::string head, bool of_types) {
  rows = largest(std::move(rows));
  std::size_t width = head.size();
  std::size_t type_width = 2;
  for (const ReportRow& row : rows) {
    width = std::max(width, row.name.size());
    type_width = std::max(type_width, row.type.size());
  }
  const auto start = [&](std::string name, std::string type) {
    name.resize(width, ' ');
    type.resize(type_width, ' ');
    return of_types ? name : name + "  " + type;
  };
  std::string text = start(std::move(head), "op") + "  forward ms  backward ms   other ms   share" +
                     (of_types ? "  calls a step" : "") + "     GFLOP        MB  of possible\n";
  for (const ReportRow& row : rows) {
    const Profile::Duration other = row.total() - row.time[kForwardColumn] - row.time[kBackwardColumn];
    text += start(row.name, row.type);
    text += formatted("  %10s  %11s  %9s  %5.1f%%", cell(row.time[kForwardColumn], profile.steps()).c_str(),
                      cell(row.time[kBackwardColumn], profile.steps()).c_str(), cell(other, profile.steps()).c_str(),
                      share(row.total(), profile));
    if (of_types) text += formatted("  %12.4g", static_cast<double>(row.calls) / static_cast<double>(profile.steps()));
    text += work_cells(row, profile.steps()) + "\n";
  }
  return text;
}

std::vector<ReportRow> by_type(const std::vector<ReportRow>& nodes) {
  std::map<std::string, ReportRow> sums;
  for (const ReportRow& node : nodes) {
    ReportRow& sum = sums[node.type];
    sum.name = node.type;
    add(sum, node);
  }
  std::vector<ReportRow> rows;
  rows.reserve(sums.size());
  for (const auto& [type, sum] : sums) rows.push_back(sum);
  return rows;
}

/// What "of possible" means, and the whole step by it.
std::string possible_text(const std::vector<ReportRow>& rows, const Profile& profile, const MachineRates& rates) {
  ReportRow all;
  for (const ReportRow& row : rows) add(all, row);
  return formatted(
      "of possible: the least time over the time. It takes at least its products (GFLOP) at the %.0f GFLOP/s of a large\nmatrix product, and its tensors (MB, each read and written once) at the %.1f GB/s of a copy, on %s.\n"
      "All together at least %.3f ms a step: %.2f\n",
      1e-9 * rates.operations_per_second, 1e-9 * rates.bytes_per_second, counted(rates.threads, "thread").c_str(),
      all.least_ms / static_cast<double>(profile.steps()),
      all.least_ms / std::max(milliseconds(profile.total()), 1e-9));
}

std::string phase_table(const Profile& profile) {
  std::string text = "phase            ms   share\n";
  const auto phases = profile.phases();
  for (std::size_t phase = 0; phase < kProfilePhases; ++phase)
    text +=
        formatted("%-12s %8.3f  %5.1f%%\n", std::string(kPhaseNames[phase]).c_str(),
                  milliseconds(phases[phase]) / static_cast<double>(profile.steps()), share(phases[phase], profile));
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

Json parts_json(const Profile& profile, const MachineRates& rates) {
  Json json = Json::array();
  const double steps = static_cast<double>(std::max<std::int64_t>(profile.steps(), 1));
  for (const Profile::Part& part : profile.parts()) {
    Json phases;
    for (std::size_t phase = 0; phase < kProfilePhases; ++phase)
      if (part.time[phase] != Profile::Duration{})
        phases[std::string(name_of(static_cast<ProfilePhase>(phase)))] = {
            {"ms", milliseconds(part.time[phase]) / steps},
            {"gflop", 2e-9 * part.work[phase].multiply_adds / steps},
            {"mb", 1e-6 * part.work[phase].bytes / steps}};
    json.push_back({{"node", part.name},
                    {"op", part.type},
                    {"phases", phases},
                    {"least_ms", row_of(part, rates).least_ms / steps}});
  }
  return json;
}

}  // namespace

std::string profile_table(const Profile& profile, const MachineRates& rates) {
  if (profile.steps() == 0) return "profile: no step was made\n";
  const std::string head = formatted("profile: %.3f ms a step, mean of %s%s\n\n",
                                     milliseconds(profile.total()) / static_cast<double>(profile.steps()),
                                     counted(profile.steps(), "step").c_str(),
                                     std::ssize(profile.kept()) > Profile::kWarmUpSteps
                                         ? concat(" (all but the first ", Profile::kWarmUpSteps, ")").c_str()
                                         : " (the first ones, slower than those to follow)");
  std::vector<ReportRow> rows;
  for (const Profile::Part& part : profile.parts()) rows.push_back(row_of(part, rates));
  return head + table(rows, profile, "node", false) + "\n" + table(by_type(rows), profile, "op", true) + "\n" +
         phase_table(profile) + "\n" + possible_text(rows, profile, rates);
}

std::string profile_trace(const Profile& profile, const MachineRates& rates) {
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
  const Json measured = {{"threads", rates.threads},
                         {"operations_per_second", rates.operations_per_second},
                         {"bytes_per_second", rates.bytes_per_second},
                         {"steps", profile.steps()},
                         {"step_ms", milliseconds(profile.total()) / std::max<double>(1, profile.steps())}};
  return concat("{\"displayTimeUnit\": \"ms\", \"rates\": ", measured.dump(),
                ",\n\"parts\": ", parts_json(profile, rates).dump(), ",\n\"traceEvents\": [\n", lines, "\n]}\n");
}

}  // namespace miniqat
