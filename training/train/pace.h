#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace miniqat::training {

/// "1:05" or "2:03:45".
std::string clock_text(double seconds);

/// How fast a run gets on. Time between pause() and resume() is not training: it counts neither for images/s nor for
/// the time left.
class Pace {
 public:
  /// Steps have `images_per_step` pictures.
  explicit Pace(std::int64_t images_per_step) : images_per_step_(images_per_step) {}

  /// Time begins now; steps first+1 .. total are to come.
  void begin(std::int64_t first, std::int64_t total);
  void step(std::int64_t step) { done_ = step - first_; }
  void pause();
  void resume();
  /// Seconds spent training so far.
  double seconds() const;
  double images_per_second() const;
  double seconds_left() const;

 private:
  using Clock = std::chrono::steady_clock;

  const std::int64_t images_per_step_;
  std::int64_t first_ = 0;
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;
  Clock::time_point started_;
  double before_pause_ = 0;
  bool running_ = false;
};

}  // namespace miniqat::training
