#include "benchmarks/suite/check/trial.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "benchmarks/suite/check/guarded_array.h"
#include "core/error.h"
#include "core/text/quote.h"

namespace miniqat::benchmarks {
namespace {

/// Memory that both processes see.
struct Notes {
  std::array<char, 512> step;
  std::array<char, 128> fault;
  std::array<char, 4001> result;
  /// The work came to its end: no other code ended the process.
  bool finished = false;
};

Notes* trial_notes = nullptr;

template <std::size_t kSize>
void write_note(std::array<char, kSize>& place, const std::string& text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(place.data(), text.data(), length);
  place[length] = '\0';
}

/// The signal comes again when this returns, and ends the process.
void note_fault(int, siginfo_t* info, void* context) {
  Notes& notes = *trial_notes;
  // Else a process sent the signal.
  const bool is_fault = info->si_code > 0;
  if (GuardedArray::describe_fault(*info, context, notes.fault.data(), notes.fault.size()) == 0 && is_fault)
    std::snprintf(notes.fault.data(), notes.fault.size(), "touched memory that is not its own");
}

[[noreturn]] void run_child(const std::function<std::string()>& work, int limit_seconds) {
  struct sigaction action = {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
  // The handlers of a sanitizer, or of our caller.
  for (const int signal : {SIGALRM, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, SIG_DFL);
  ::alarm(static_cast<unsigned>(limit_seconds));
  try {
    write_note(trial_notes->result, work());
  } catch (const Error& error) {
    write_note(trial_notes->result, error.what());
  } catch (const std::exception& error) {
    write_note(trial_notes->result, concat(trial_notes->step.data(), ": threw ", quote(error.what())));
  } catch (...) {
    write_note(trial_notes->result, concat(trial_notes->step.data(), ": threw an exception"));
  }
  trial_notes->finished = true;
  ::_exit(0);
}

std::string ending_of(int status, const Notes& notes, int limit_seconds) {
  if (notes.finished && WIFEXITED(status) && WEXITSTATUS(status) == 0) return notes.result.data();
  std::string what = notes.step.data();
  what += what.empty() ? "" : ": ";
  if (notes.fault[0] != '\0') return what + notes.fault.data();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return concat(what, "did not end within ", limit_seconds, " seconds");
  if (WIFSIGNALED(status))
    return concat(what, "ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return concat(what, "ended the process with status ", WEXITSTATUS(status));
}

}  // namespace

void trial_step(const std::string& what) {
  if (trial_notes != nullptr) write_note(trial_notes->step, what);
}

std::string run_trial(const std::function<std::string()>& work, int limit_seconds) {
  void* const memory = ::mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for a process");
  trial_notes = new (memory) Notes{};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_child(work, limit_seconds);
  int status = 0;
  const int error = child < 0 ? errno : 0;
  if (child > 0)
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  std::string result = error != 0 ? "" : ending_of(status, *trial_notes, limit_seconds);
  trial_notes = nullptr;
  ::munmap(memory, sizeof(Notes));
  if (error != 0) fail("cannot start a process: ", std::strerror(error));
  return result;
}

}  // namespace miniqat::benchmarks
