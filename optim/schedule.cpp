#include "optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::optim {
namespace {

/// In the order of ScheduleKind.
constexpr std::array<std::string_view, 4> kNames = {"constant", "step", "exponential", "cosine"};

}  // namespace

Schedule::Schedule(ScheduleKind kind, const ScheduleOptions& options) : kind_(kind), options_(options) {
  if (options.warmup_steps < 0) fail("warmup_steps must not be negative, is ", options.warmup_steps);
  if (!(options.warmup_start >= 0 && options.warmup_start < 1))
    fail("warmup_start must be in [0, 1), is ", exact(options.warmup_start));
  const std::string_view name = kNames[static_cast<std::size_t>(kind)];
  if (kind == ScheduleKind::kStep || kind == ScheduleKind::kExponential) {
    if (options.every < 1) fail("schedule ", name, ": every must be at least 1 step, is ", options.every);
    if (!(options.factor > 0 && options.factor <= 1))
      fail("schedule ", name, ": factor must be in (0, 1], is ", exact(options.factor));
  }
  if (kind == ScheduleKind::kCosine) {
    if (options.total_steps <= options.warmup_steps)
      fail("schedule cosine: total_steps must exceed warmup_steps ", options.warmup_steps, ", is ",
           options.total_steps);
    if (!(options.floor >= 0 && options.floor <= 1))
      fail("schedule cosine: floor must be in [0, 1], is ", exact(options.floor));
  }
}

double Schedule::factor(std::int64_t step) const {
  if (step < 1) fail("steps are counted from 1, is ", step);
  const std::int64_t warmup = options_.warmup_steps;
  if (step <= warmup)
    return options_.warmup_start +
           (1 - options_.warmup_start) * (static_cast<double>(step) / static_cast<double>(warmup));
  const std::int64_t t = step - 1 - warmup;
  switch (kind_) {
    case ScheduleKind::kConstant:
      break;
    case ScheduleKind::kStep:
      return std::pow(options_.factor, t / options_.every);
    case ScheduleKind::kExponential:
      return std::pow(options_.factor, static_cast<double>(t) / static_cast<double>(options_.every));
    case ScheduleKind::kCosine: {
      const double progress = static_cast<double>(t) / static_cast<double>(options_.total_steps - warmup);
      const double height = (1 + std::cos(std::numbers::pi * std::min(progress, 1.0))) / 2;
      return options_.floor + (1 - options_.floor) * height;
    }
  }
  return 1;
}

std::span<const std::string_view> schedule_names() { return kNames; }

Schedule make_schedule(std::string_view name, const ScheduleOptions& options) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) fail_unknown("schedule", name, kNames);
  return Schedule(static_cast<ScheduleKind>(found - kNames.begin()), options);
}

}  // namespace miniqat::optim
