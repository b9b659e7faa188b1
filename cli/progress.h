#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/progress_line.h"

namespace miniqat::cli {

/// "1:05" or "2:03:45".
std::string clock_text(double seconds);

/// Shows how a run gets on: a bar with images/s, loss and time left on a terminal, plain lines now and then otherwise.
class Progress {
 public:
  /// Steps first+1 .. total are to come, of `images_per_step` pictures; `lines_every` steps a plain line is printed.
  Progress(std::int64_t first, std::int64_t total, std::int64_t images_per_step, std::int64_t lines_every);
  Progress(const Progress&) = delete;

  void step(std::int64_t step, double loss, double epoch);
  /// Prints a line of its own, above the bar.
  void line(const std::string& text);
  /// Time until resume() is not training: it counts neither for images/s nor for the time left.
  void pause();
  void resume();
  /// Seconds spent training so far.
  double seconds() const;
  double images_per_second() const;

 private:
  using Clock = std::chrono::steady_clock;

  ProgressLine bar_{stdout};
  const std::int64_t first_;
  const std::int64_t total_;
  const std::int64_t images_per_step_;
  const std::int64_t lines_every_;
  std::int64_t done_ = 0;
  Clock::time_point started_ = Clock::now();
  Clock::time_point drawn_{};
  double before_pause_ = 0;
  bool running_ = true;
};

}  // namespace miniqat::cli
