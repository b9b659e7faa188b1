#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/suite/measure/quietness.h"

namespace miniqat::benchmarks {

/// Processes that do nothing but use the cores, one for each core that this process may use. They end with the object,
/// with the thread that made it, and after some minutes in any case.
class BusyNeighbours {
 public:
  /// In the session of this process, or each in one of its own. Linux may share the cores out between sessions first
  /// (autogroup): then as many processes in sessions of their own get more of them. Throws Error.
  explicit BusyNeighbours(bool own_sessions);
  ~BusyNeighbours();
  BusyNeighbours(const BusyNeighbours&) = delete;
  BusyNeighbours& operator=(const BusyNeighbours&) = delete;

 private:
  std::vector<int> processes_;
};

/// Training speeds in images/s, in the order of the rounds.
struct LoadedSpeed {
  std::string model;
  /// "none", "same session" or "own sessions".
  std::string neighbours;
  std::int64_t batch = 0;
  int threads = 0;
  std::vector<double> all_threads, one_thread;
  /// all_threads as a multiple of the better of half the speed without neighbours and one_thread; none without
  /// neighbours.
  std::vector<double> of_bar;
  /// Of all rounds together: other load than the neighbours'. Beside these, being interrupted is no disturbance.
  Disturbance disturbance;
};

/// A model's W8A8 training steps on thread_count() threads and on one, without neighbours and beside both kinds of them
/// in turns, five rounds. `check` is called after each step; what it throws passes on, neighbours gone.
std::vector<LoadedSpeed> bench_loaded(const std::string& model, double budget_seconds,
                                      const std::function<void()>& check);

}  // namespace miniqat::benchmarks
