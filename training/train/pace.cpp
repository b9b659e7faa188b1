#include "training/train/pace.h"

#include <algorithm>
#include <cmath>

#include "core/text/classic.h"

namespace miniqat::training {

std::string clock_text(double seconds) {
  const auto whole = std::lround(std::clamp(seconds, 0.0, 1e8));
  char text[32];
  if (whole >= 3600)
    classic_snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    classic_snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

void Pace::begin(std::int64_t first, std::int64_t total) {
  first_ = first;
  total_ = total;
  resume();
}

double Pace::seconds() const {
  return before_pause_ + (running_ ? std::chrono::duration<double>(Clock::now() - started_).count() : 0);
}

double Pace::images_per_second() const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>(done_ * images_per_step_) / elapsed : 0;
}

double Pace::seconds_left() const {
  return done_ > 0 ? seconds() / static_cast<double>(done_) * static_cast<double>(total_ - first_ - done_) : 0;
}

void Pace::pause() {
  before_pause_ = seconds();
  running_ = false;
}

void Pace::resume() {
  started_ = Clock::now();
  running_ = true;
}

}  // namespace miniqat::training
