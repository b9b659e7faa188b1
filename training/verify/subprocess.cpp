#include "training/verify/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "core/text/error.h"

namespace miniqat::training {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe: ", std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close_write();
    close(read);
  }
  Pipe(const Pipe&) = delete;
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }

  int read = -1;
  int write = -1;
};

/// What is kept of a program's output, at least; reading goes on, so that the program does not wait.
constexpr std::size_t kMostOutput = std::size_t{1} << 24;

using Clock = std::chrono::steady_clock;

/// How long to wait for the program: until it takes too long, or `check` throws.
class Patience {
 public:
  Patience(std::chrono::seconds limit, const std::function<void()>& check) : limit_(limit), check_(check) {}
  bool is_over() const {
    if (check_) check_();
    return limit_.count() > 0 && Clock::now() - started_ >= limit_;
  }

 private:
  std::chrono::seconds limit_;
  const std::function<void()>& check_;
  Clock::time_point started_ = Clock::now();
};

/// Reads both pipes to their ends, whichever has something. False when the patience was over before.
bool drain(const Pipe& out, const Pipe& err, const Patience& patience, Finished& finished) {
  // Short naps: a signal between the look at the flag and poll() would otherwise be slept through.
  constexpr int kNapMilliseconds = 100;
  std::array<pollfd, 2> polled = {pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&finished.out, &finished.err};
  int open = 2;
  while (open > 0) {
    if (patience.is_over()) return false;
    const int ready = poll(polled.data(), polled.size(), kNapMilliseconds);
    if (ready < 0 && errno != EINTR) fail("cannot wait for a program: ", std::strerror(errno));
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t got = read(polled[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        if (texts[i]->size() < kMostOutput) texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        polled[i].fd = -1;
        --open;
      }
    }
  }
  return true;
}

/// A process that is killed, with its group, and reaped when nobody has waited for its end.
class Child {
 public:
  explicit Child(pid_t process) : process_(process) {}
  ~Child() { stop(); }
  Child(const Child&) = delete;

  /// Whether the process, which may have closed its pipes and live on, has ended before the patience was over.
  bool ends_within(const Patience& patience) {
    for (std::chrono::milliseconds nap(1);; nap = std::min(2 * nap, std::chrono::milliseconds(50))) {
      const pid_t ended = waitpid(process_, &status_, WNOHANG);
      if (ended < 0 && errno != EINTR) fail("cannot wait for a program: ", std::strerror(errno));
      reaped_ = ended == process_;
      if (reaped_) return true;
      if (patience.is_over()) return false;
      std::this_thread::sleep_for(nap);
    }
  }

  void stop() {
    if (reaped_) return;
    kill(-process_, SIGKILL);
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
  }

  /// As a shell has it, once the process has ended or was stopped.
  int status() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }

 private:
  pid_t process_;
  int status_ = 0;
  bool reaped_ = false;
};

/// Ours, without the telemetry that ONNX Runtime's npm package has switched on: it leaves files in the user's cache and
/// looks up its maker's host.
class Environment {
 public:
  Environment() {
    constexpr std::string_view kName = "ORT_DISABLE_TELEMETRY=";
    for (char** entry = environ; *entry != nullptr; ++entry)
      if (!std::string_view(*entry).starts_with(kName)) entries_.push_back(*entry);
    entries_.push_back(off_.data());
    entries_.push_back(nullptr);
  }
  Environment(const Environment&) = delete;

  char** entries() { return entries_.data(); }

 private:
  std::string off_ = "ORT_DISABLE_TELEMETRY=1";
  std::vector<char*> entries_;
};

/// The process, with its output in the pipes; -1 when there is no such program.
pid_t start(const std::vector<std::string>& command, const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Environment environment;
  pid_t process = -1;
  const int failure =
      posix_spawnp(&process, arguments[0], &actions, &attributes, arguments.data(), environment.entries());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) return -1;
  if (failure != 0) fail("cannot run ", command[0], ": ", std::strerror(failure));
  return process;
}

}  // namespace

Finished run_program(const std::vector<std::string>& command, std::chrono::seconds limit,
                     const std::function<void()>& check) {
  Pipe out, err;
  Finished finished;
  const pid_t process = start(command, out, err);
  if (process < 0) {
    finished.status = 127;
    return finished;
  }
  Child child(process);
  out.close_write();
  err.close_write();
  const Patience patience(limit, check);
  finished.timed_out = !(drain(out, err, patience, finished) && child.ends_within(patience));
  child.stop();
  finished.status = child.status();
  return finished;
}

}  // namespace miniqat::training
