#include "cli/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/interrupt.h"
#include "core/error.h"

extern char** environ;

namespace miniqat::cli {
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

using Clock = std::chrono::steady_clock;

/// Reads both pipes to their ends, whichever has something. False when `limit` was over before, or an interrupt came.
bool drain(const Pipe& out, const Pipe& err, std::chrono::seconds limit, Finished& finished) {
  // Short naps: a signal between the look at the flag and poll() would otherwise be slept through.
  constexpr int kNapMilliseconds = 100;
  const Clock::time_point started = Clock::now();
  std::array<pollfd, 2> polled = {pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&finished.out, &finished.err};
  int open = 2;
  while (open > 0) {
    if (InterruptGuard::requested() || (limit.count() > 0 && Clock::now() - started >= limit)) return false;
    const int ready = poll(polled.data(), polled.size(), kNapMilliseconds);
    if (ready < 0 && errno != EINTR) fail("cannot wait for a program: ", std::strerror(errno));
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t got = read(polled[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        polled[i].fd = -1;
        --open;
      }
    }
  }
  return true;
}

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
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  const int failure = posix_spawnp(&process, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) return -1;
  if (failure != 0) fail("cannot run ", command[0], ": ", std::strerror(failure));
  return process;
}

}  // namespace

Finished run_program(const std::vector<std::string>& command, std::chrono::seconds limit) {
  Pipe out, err;
  Finished finished;
  const pid_t process = start(command, out, err);
  if (process < 0) {
    finished.status = 127;
    return finished;
  }
  out.close_write();
  err.close_write();
  const bool ended = drain(out, err, limit, finished);
  if (!ended) kill(-process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  InterruptGuard::check();
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finished.timed_out = !ended;
  return finished;
}

}  // namespace miniqat::cli
