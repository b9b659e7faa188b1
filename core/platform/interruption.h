#pragma once

#include <signal.h>

#include <exception>

namespace miniqat {

/// Thrown by interruption_point(): the program is to end soon, and what is under way is given up. No Error: nothing is
/// wrong, and what goes on after errors must not go on after this.
class Interruption : public std::exception {};

/// While one lives, long work asks `check` at every interruption_point(), in any thread: it throws an Interruption, or
/// returns. The program sets one where a signal shall not end it at once. Without any, nothing is asked. One inside
/// another takes its place; nullptr lets nobody interrupt.
class InterruptionScope {
 public:
  explicit InterruptionScope(void (*check)());
  ~InterruptionScope();
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  void (*before_)();
};

/// While one lives, no handler of a signal runs in the calling thread, and threads that it starts begin like that; what
/// comes meanwhile is delivered at the end, or to another thread. Faults, SIGABRT and the like go their way.
///
/// For generated code: the system puts the handler's frame below the stack pointer, and oneDNN's product kernels point
/// that at a buffer of theirs (versions 2.6 and 3.7, AVX and AVX2, for sums of more than 252 products). The frame then
/// overwrites whatever the heap has below that buffer.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// Between two parts of long work (operations of a network, pieces of a file), which an exception may leave: nothing is
/// changed yet that a caller keeps. Costs as much as a look at a flag.
void interruption_point();

}  // namespace miniqat
