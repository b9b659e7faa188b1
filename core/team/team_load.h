#pragma once

#include <chrono>
#include <optional>

namespace miniqat {

/// Decides when a thread does without its workers, because other programs keep them from their cores: waiting for a
/// part whose thread lost its core takes milliseconds, and computing all parts takes less. Now and then it asks the
/// workers again.
class TeamLoad {
 public:
  using Clock = std::chrono::steady_clock;

  /// The thread has waited until `end` for one of `threads` threads; `lost` is what this one spent without a core.
  void add_wait(Clock::time_point end, Clock::duration lost, int threads);
  /// Whether to compute alone. The clock is read only while it does.
  bool is_alone() { return until_.has_value() && is_alone_at(Clock::now()); }
  bool is_alone_at(Clock::time_point now);
  /// How long it was alone, until `now`.
  Clock::duration alone_until(Clock::time_point now) const;
  /// The next region asks the workers, as if none had ever lost its core.
  void forget(Clock::time_point now);

 private:
  /// Waits are added up for so long.
  static constexpr Clock::duration kWindow = std::chrono::milliseconds(50);
  static constexpr Clock::duration kShortest = std::chrono::milliseconds(50);
  static constexpr Clock::duration kLongest = std::chrono::milliseconds(1600);

  Clock::time_point window_{};
  Clock::duration lost_{};
  /// Alone from begin_ on until then; none while the workers compute, too.
  std::optional<Clock::time_point> until_;
  Clock::time_point begin_{};
  /// All that have ended.
  Clock::duration alone_{};
  /// When that ended last, and how long it took.
  Clock::time_point last_end_{};
  Clock::duration length_ = kShortest;
};

}  // namespace miniqat
