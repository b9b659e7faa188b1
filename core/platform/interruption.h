#pragma once

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

/// Between two parts of long work (operations of a network, pieces of a file), which an exception may leave: nothing is
/// changed yet that a caller keeps. Costs as much as a look at a flag.
void interruption_point();

}  // namespace miniqat
