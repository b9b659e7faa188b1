#include "cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "core/text/error.h"
#include "training/run_observer.h"

namespace miniqat::cli {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

/// Short work (the last step, the evaluation of a small network) may come to its end after a signal.
constexpr std::int64_t kGraceMilliseconds = 300;

/// The signal that came first, or 0.
volatile std::sig_atomic_t flag = 0;
/// When that was.
std::atomic<std::int64_t> raised_at = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t milliseconds_now() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void raise_flag(int signal) {
  if (flag != 0) return;
  raised_at = milliseconds_now();
  flag = signal;
}

void check_after_grace() {
  if (flag != 0 && milliseconds_now() - raised_at >= kGraceMilliseconds) InterruptGuard::check();
}

bool reader_has_gone() {
  pollfd polled = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR) != 0;
}

}  // namespace

InterruptGuard::InterruptGuard() : scope_(check_after_grace) {
  static_assert(sizeof before_ / sizeof before_[0] == kSignals.size());
  flag = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = raise_flag;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool InterruptGuard::requested() { return flag != 0; }

void InterruptGuard::check() {
  if (const int signal = flag) throw Interrupted(signal);
}

BrokenPipeGuard::BrokenPipeGuard() {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGPIPE, &action, &before_);
}

BrokenPipeGuard::~BrokenPipeGuard() { ::sigaction(SIGPIPE, &before_, nullptr); }

void run_until_stopped(const std::function<void()>& work) {
  const InterruptGuard interrupts;
  const BrokenPipeGuard broken_pipes;
  try {
    work();
  } catch (const training::Stopped&) {
    InterruptGuard::check();
  }
}

void keep_standard_streams() {
  // open() takes the lowest number that is free: the closed one.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

std::string failure_of_stdout() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  int reason = flushed ? 0 : errno;
  if (!failed_before && flushed) return {};
  if (reader_has_gone()) return {};
  // The stream does not remember why; the file still knows, if it is that of a device that is full or closed.
  if (reason == 0 && write(STDOUT_FILENO, "", 0) < 0) reason = errno;
  return concat("cannot write to standard output", reason == 0 ? "" : concat(": ", std::strerror(reason)));
}

}  // namespace miniqat::cli
