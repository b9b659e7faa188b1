#include "core/engine/profile.h"

#include <numeric>

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
    // Its memory is used again.
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

}  // namespace miniqat
