#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.h"
#include "core/threads/parallel.h"
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

/// Runs the program to its end, as a process of its own: for what depends on how a process begins or ends, or on its
/// memory.
Outcome started(const Arguments& arguments, const std::filesystem::path& directory = {});

/// The same without a process, in `directory` if one is given: that takes a fraction of the time, above all under
/// sanitizers. Inline, as only test_cli and test_others are linked with the program.
inline Outcome miniqat(const Arguments& arguments, const std::filesystem::path& directory = {}) {
  Arguments line = Arguments{"miniqat"} + arguments;
  std::vector<char*> pointers;
  for (std::string& word : line) pointers.push_back(word.data());
  unsetenv("MINIQAT_DATA_DIR");
  const int threads = thread_count();
  set_thread_count(default_thread_count());
  const std::filesystem::path before = std::filesystem::current_path();
  if (!directory.empty()) std::filesystem::current_path(directory);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status = cli::main_program(static_cast<int>(pointers.size()), pointers.data());
  outcome.err = ::testing::internal::GetCapturedStderr();
  outcome.out = ::testing::internal::GetCapturedStdout();
  std::filesystem::current_path(before);
  set_thread_count(threads);
  return outcome;
}

/// Expects status 0 and an empty stderr. Returns the outcome.
Outcome expect_success(const Outcome& outcome);
/// Expects the status, and on stderr exactly one line, which starts with the program's name, holds every part and is
/// nothing that a crash leaves behind.
void expect_error(const Outcome& outcome, int status, const std::vector<std::string>& parts);

/// Expects every part somewhere in what was printed.
void expect_text(const std::string& text, const std::vector<std::string>& parts);

/// `text` with `to` in each place of `from`, which must be there.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// The bytes of a file; fails the test when there is none.
std::string bytes_of(const std::filesystem::path& path);

/// Sets an environment variable for the programs started while it lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~EnvironmentVariable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

/// Tests of the program in a directory of their own.
class ProgramTest : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return place_.path() / name; }
  Outcome program(const Arguments& line) const { return miniqat(line, place_.path()); }

  TempDir place_;
};

/// Tests of the program that share a directory, in which Suite::make() has put what they need and leave as it is.
template <class Suite>
class SharedPlaceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = new TempDir;
    Suite::make();
  }
  static void TearDownTestSuite() { delete place_; }

  static std::filesystem::path path(const std::string& name) { return place_->path() / name; }
  static Outcome program(const Arguments& line) { return miniqat(line, place_->path()); }

  static inline TempDir* place_ = nullptr;
};

}  // namespace miniqat::testing
