#include "tests/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace miniqat::testing {
namespace {

constexpr unsigned kTimeLimitSeconds = 120;

/// Between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* arguments, const char* directory, const char* out, const char* err) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  const bool ready = (*directory == '\0' || chdir(directory) == 0) &&
                     dup2(open(out, kFlags, 0600), STDOUT_FILENO) >= 0 &&
                     dup2(open(err, kFlags, 0600), STDERR_FILENO) >= 0;
  if (ready) {
    alarm(kTimeLimitSeconds);
    execv(arguments[0], arguments);
  }
  _exit(127);
}

Program::Line with_path(const Arguments& arguments) { return {Arguments{program_path()} + arguments}; }

}  // namespace

Arguments::Arguments(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;) push_back(word);
}

Arguments::Arguments(const char* line) : Arguments(std::string(line)) {}

Arguments operator+(Arguments line, const Arguments& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

std::string program_path() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../cli/miniqat").lexically_normal();
}

Program::Program(const Arguments& arguments, const std::filesystem::path& directory)
    : Program(with_path(arguments), directory) {}

Program::Program(Line line, const std::filesystem::path& directory) {
  unsetenv("MINIQAT_DATA_DIR");
  std::vector<char*> pointers;
  for (std::string& word : line.words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string out = output_.path() / "stdout";
  const std::string err = output_.path() / "stderr";
  // A child may be killed before it opens them.
  for (const std::string& file : {out, err}) std::ofstream{file};
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ == 0) become(pointers.data(), directory.c_str(), out.c_str(), err.c_str());
}

Program::~Program() {
  if (reaped_) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool Program::ended() {
  if (!reaped_) reaped_ = waitpid(process_, &wait_status_, WNOHANG) == process_;
  return reaped_;
}

void Program::wait_for_output(std::string_view text) {
  while (!ended()) {
    if (bytes_of(output_.path() / "stdout").find(text) != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Program::send(int signal) const {
  if (!reaped_) kill(process_, signal);
}

Outcome Program::wait() {
  if (!reaped_) reaped_ = waitpid(process_, &wait_status_, 0) == process_;
  const int status = WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
  return {status, bytes_of(output_.path() / "stdout"), bytes_of(output_.path() / "stderr")};
}

Outcome started(const Arguments& arguments, const std::filesystem::path& directory) {
  return Program(arguments, directory).wait();
}

Outcome expect_success(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome;
}

void expect_error(const Outcome& outcome, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  const std::string& text = outcome.err;
  EXPECT_TRUE(text.starts_with("miniqat")) << text;
  EXPECT_TRUE(text.ends_with("\n") && std::ranges::count(text, '\n') == 1) << "not one line:\n" << text;
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in " << text;
  for (const char* trace : {"terminate", "what()", "runtime error", "Sanitizer"})
    EXPECT_EQ(text.find(trace), std::string::npos) << text;
}

void expect_text(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in\n" << text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  expect_text(text, {from});
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace miniqat::testing
