#include "cli/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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

/// Reads both pipes to their ends, whichever has something.
void drain(const Pipe& out, const Pipe& err, Finished& finished) {
  std::array<pollfd, 2> polled = {pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&finished.out, &finished.err};
  int open = 2;
  while (open > 0) {
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
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
}

}  // namespace

Finished run_program(const std::vector<std::string>& command) {
  Pipe out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  const int failure = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  Finished finished;
  if (failure == ENOENT) {
    finished.status = 127;
    return finished;
  }
  if (failure != 0) fail("cannot run ", command[0], ": ", std::strerror(failure));
  out.close_write();
  err.close_write();
  drain(out, err, finished);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}  // namespace miniqat::cli
