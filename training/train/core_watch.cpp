#include "training/train/core_watch.h"

#include <cmath>

namespace miniqat::training {
namespace {

constexpr double kSecondsWatched = 3;
constexpr double kMuch = 0.1;

}  // namespace

void CoreWatch::after_step(double now, double without_cores) {
  const double seconds = now - start_;
  if (warned_ || seconds < kSecondsWatched) return;
  const double share = (without_cores - without_cores_) / seconds;
  start_ = now;
  without_cores_ = without_cores;
  if (share < kMuch) return;
  warned_ = true;
  observer_.warn(concat("note: ", std::lround(100 * share), "% of the last ", std::lround(seconds),
                        " seconds went into waiting for threads of this run that had no core: other programs use the ",
                        "cores; fewer --threads N for the next run may be faster"));
}

}  // namespace miniqat::training
