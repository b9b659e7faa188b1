#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace miniqat::distributed {

/// While one lives, its thread waits for other ranks, or is in a call that may do so. One thread of a process at a
/// time, as with the Communicator; the same thread may have one within another.
class WaitForRanks {
 public:
  WaitForRanks();
  ~WaitForRanks();
  WaitForRanks(const WaitForRanks&) = delete;

 private:
  bool outermost_;
};

/// Calls `end` once asked() has been true for `patience`, and a wait for ranks has lasted as long: another rank is
/// dead, probably. Slurm asks the others to end then, and kills them only half a minute later; they would wait so long
/// for the end of the step. A thread of its own looks, since an MPI library may not return from a call. `asked` and
/// `end` are called by that thread.
class DeadRankWatch {
 public:
  DeadRankWatch(bool (*asked)(), std::function<void()> end,
                std::chrono::milliseconds patience = std::chrono::seconds(4));

 private:
  void look(const std::stop_token& stop, bool (*asked)(), const std::function<void()>& end) const;

  std::chrono::milliseconds patience_;
  std::jthread thread_;
};

}  // namespace miniqat::distributed
