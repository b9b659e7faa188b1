#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

#include "tests/cli/program.h"

namespace miniqat::testing {

/// The miniqat program on a terminal of its own, which is its stdin, stdout and stderr. One that hangs is ended by
/// SIGALRM after two minutes; one that still runs when the object goes is killed.
class ProgramOnTerminal {
 public:
  ProgramOnTerminal(const Arguments& arguments, const std::filesystem::path& directory, int columns);
  ~ProgramOnTerminal();
  ProgramOnTerminal(const ProgramOnTerminal&) = delete;

  /// As somebody does who drags a window's edge.
  void resize(int columns) const;
  /// What the program has drawn so far, once `enough` says so of it or the program has ended.
  const std::string& wait_for(const std::function<bool(const std::string& drawn)>& enough);
  void send(int signal) const;
  /// All that it has drawn, at its end.
  const std::string& wait();

 private:
  int terminal_ = -1;
  pid_t process_ = -1;
  std::string drawn_;
};

/// The columns of the widest of the lines and drawings in what a terminal was sent: they end at \n and at \r. Sequences
/// that move nothing (\x1b[K) do not count.
std::size_t widest_drawing(const std::string& drawn);

}  // namespace miniqat::testing
