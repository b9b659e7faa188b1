#include "cli/progress.h"

#include <algorithm>
#include <cstdio>

namespace miniqat::cli {

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::clamp(seconds, 0.0, 1e8) + 0.5);
  char text[32];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

Progress::Progress(std::int64_t first, std::int64_t total, std::int64_t images_per_step, std::int64_t lines_every)
    : first_(first),
      total_(total),
      images_per_step_(images_per_step),
      lines_every_(std::max<std::int64_t>(lines_every, 1)) {}

double Progress::seconds() const {
  return before_pause_ + (running_ ? std::chrono::duration<double>(Clock::now() - started_).count() : 0);
}

double Progress::images_per_second() const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>(done_ * images_per_step_) / elapsed : 0;
}

void Progress::pause() {
  before_pause_ = seconds();
  running_ = false;
}

void Progress::resume() {
  started_ = Clock::now();
  running_ = true;
}

void Progress::step(std::int64_t step, double loss, double epoch) {
  done_ = step - first_;
  const double left = done_ > 0 ? seconds() / static_cast<double>(done_) * static_cast<double>(total_ - step) : 0;
  if (!bar_.on_terminal()) {
    if (step % lines_every_ == 0 || step == total_)
      std::printf("step %6ld/%ld  epoch %5.2f  loss %.4f  %.0f images/s  %s left\n", static_cast<long>(step),
                  static_cast<long>(total_), epoch, loss, images_per_second(), clock_text(left).c_str());
    std::fflush(stdout);
    return;
  }
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && step != total_) return;
  drawn_ = now;
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * step / std::max<std::int64_t>(total_, 1));
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  char text[160];
  std::snprintf(text, sizeof text, "[%s] %ld/%ld  epoch %.2f  loss %.4f  %.0f images/s  %s left ", bar.c_str(),
                static_cast<long>(step), static_cast<long>(total_), epoch, loss, images_per_second(),
                clock_text(left).c_str());
  bar_.show(text);
}

void Progress::line(const std::string& text) {
  bar_.clear();
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace miniqat::cli
