#include "training/train/core_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/team/team.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/threads/cpu_quota.h"
#include "core/threads/parallel.h"

namespace miniqat::training {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kSecondsWatched = 3;
constexpr double kMuch = 0.1;

std::string quota_text(double quota) {
  char text[32];
  classic_snprintf(text, sizeof text, "%.3g", quota);
  return concat("a CPU quota of ", text, quota == 1 ? " core" : " cores");
}

/// What is too small for that many threads, if it is known beforehand; else empty.
std::string crowded_text(const CoreLimits& limits) {
  const int most = std::min(limits.cores, cores_of_quota(limits.quota));
  if (limits.threads <= most) return "";
  return concat("note: ", counted(limits.threads, "thread"), " share ",
                most < limits.cores ? quota_text(*limits.quota) : counted(limits.cores, "core"),
                " and wait for one another; --threads ", most, " for the next run may be faster");
}

}  // namespace

CoreLimits CoreLimits::now() { return {.threads = thread_count(), .cores = available_cores(), .quota = cpu_quota()}; }

CoreWatch::CoreWatch(RunObserver& observer) : CoreWatch(observer, seconds_now(), seconds_without_cores()) {}

void CoreWatch::after_step(const TrainedStep&) { look(seconds_now(), seconds_without_cores()); }

void CoreWatch::look(double now, double without_cores) {
  const double seconds = now - start_;
  if (warned_ || seconds < kSecondsWatched) return;
  const double share = (without_cores - without_cores_) / seconds;
  start_ = now;
  without_cores_ = without_cores;
  const std::string crowded = crowded_text(limits_);
  if (share < kMuch && crowded.empty()) return;
  warned_ = true;
  if (!crowded.empty()) return observer_.warn(crowded);
  const bool quota_binds = limits_.quota && *limits_.quota < limits_.threads;
  observer_.warn(concat("note: for ", std::lround(100 * share), "% of the last ", std::lround(seconds),
                        " seconds threads of this run had no core: ",
                        quota_binds ? quota_text(*limits_.quota) + " allows for less" : "other programs use the cores",
                        "; fewer --threads N for the next run may be faster"));
}

}  // namespace miniqat::training
