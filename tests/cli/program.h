#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/temp_dir.h"

namespace miniqat::testing {

/// The words of a command line: a list of them, or the line itself, which is split at its blanks.
class Arguments : public std::vector<std::string> {
 public:
  using vector::vector;
  Arguments() = default;
  Arguments(const char* line);         // NOLINT(google-explicit-constructor): as a user types it
  Arguments(const std::string& line);  // NOLINT(google-explicit-constructor)
};
/// One line with more words behind it.
Arguments operator+(Arguments line, const Arguments& more);

/// How a program ended and what it printed.
struct Outcome {
  /// The exit status, or 128 + the signal that ended it.
  int status = -1;
  std::string out;
  std::string err;
};

/// The miniqat program as a process of its own, without MINIQAT_DATA_DIR. One that hangs is ended by SIGALRM after two
/// minutes; one that still runs when the object goes is killed.
class Program {
 public:
  explicit Program(const Arguments& arguments, const std::filesystem::path& directory = {});
  /// Another program: its path and its arguments.
  struct Line {
    Arguments words;
  };
  explicit Program(Line line, const std::filesystem::path& directory = {});
  ~Program();
  Program(const Program&) = delete;

  /// Returns once the program has printed `text` to stdout, or has ended.
  void wait_for_output(std::string_view text);
  void send(int signal) const;
  Outcome wait();

 private:
  bool ended();

  TempDir output_;
  pid_t process_ = -1;
  /// As waitpid() has it, once the program has ended.
  int wait_status_ = 0;
  bool reaped_ = false;
};

/// The miniqat program of the build that this test program is of.
std::string program_path();

/// Runs the program to its end, in `directory` if one is given.
Outcome miniqat(const Arguments& arguments, const std::filesystem::path& directory = {});

/// Expects status 0 and an empty stderr. Returns the outcome.
Outcome expect_success(const Outcome& outcome);
/// Expects the status, and on stderr exactly one line, which starts with the program's name, holds every part and is
/// nothing that a crash leaves behind.
void expect_error(const Outcome& outcome, int status, const std::vector<std::string>& parts);

/// Expects every part somewhere in what was printed.
void expect_text(const std::string& text, const std::vector<std::string>& parts);

/// The bytes of a file; fails the test when there is none.
std::string bytes_of(const std::filesystem::path& path);

/// Tests of the program in a directory of their own.
class ProgramTest : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return place_.path() / name; }
  Outcome program(const Arguments& line) const { return miniqat(line, place_.path()); }

  TempDir place_;
};

}  // namespace miniqat::testing
