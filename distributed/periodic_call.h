#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace miniqat::distributed {

/// Calls a function at intervals, from a thread of its own, in the stretches between resume() and pause(). That thread
/// shares the core of the one that resumes first, and wakes at each interval only.
class PeriodicCall {
 public:
  PeriodicCall(std::chrono::microseconds interval, std::function<void()> beat);
  ~PeriodicCall();
  PeriodicCall(const PeriodicCall&) = delete;
  PeriodicCall& operator=(const PeriodicCall&) = delete;

  /// The first call comes an interval later at most.
  void resume();
  /// Waits for a call that runs; none comes until resume().
  void halt() noexcept;
  /// halt(), and throws what a call since the last pause() has thrown; after that there was none.
  void pause();

 private:
  void run();

  std::chrono::microseconds interval_;
  std::function<void()> beat_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool beats_ = false;
  bool ended_ = false;
  /// Whether the thread waits for resume(), not for the time.
  bool sleeps_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace miniqat::distributed
