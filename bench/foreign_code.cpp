#include "bench/foreign_code.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <vector>

#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat::bench {
namespace {

/// So far beyond the open end the pattern is looked at.
constexpr std::size_t kWatched = 1024;
constexpr std::byte kPattern{0xa5};
/// So far beyond the other end nothing may be touched: a row of pixels and more.
constexpr std::size_t kGuardPages = 16;

/// All that live, for the signal handler. Only one thread makes them.
std::vector<const GuardedArray*>& living_arrays() {
  static auto& arrays = *new std::vector<const GuardedArray*>;
  return arrays;
}

/// "right after the end of x", "8 bytes after the end of x"; also in a signal handler.
void write_distance(std::size_t bytes, const char* where, const char* name, char* text, std::size_t capacity) {
  if (bytes == 0)
    std::snprintf(text, capacity, "right %s of %s", where, name);
  else
    std::snprintf(text, capacity, "%zu %s %s of %s", bytes, bytes == 1 ? "byte" : "bytes", where, name);
}

/// What the processor was doing there, if it says so.
std::string_view verb_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__) && defined(__linux__)
  // Bit 1 of the error code of a page fault is set for a write.
  const auto* const machine = static_cast<const ucontext_t*>(context);
  return (machine->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "wrote " : "read ";
#else
  return "touched ";
#endif
}

constexpr unsigned kTrialSeconds = 60;

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

[[noreturn]] void run_child(const std::function<void()>& work) {
  struct sigaction action = {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
  // The handlers of a sanitizer, or of our caller.
  for (const int signal : {SIGALRM, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, SIG_DFL);
  ::alarm(kTrialSeconds);
  try {
    work();
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

std::string ending_of(int status, const Notes& notes) {
  if (notes.finished && WIFEXITED(status) && WEXITSTATUS(status) == 0) return notes.result.data();
  std::string what = notes.step.data();
  what += what.empty() ? "" : ": ";
  if (notes.fault[0] != '\0') return what + notes.fault.data();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return concat(what, "did not end within ", kTrialSeconds, " seconds");
  if (WIFSIGNALED(status))
    return concat(what, "ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return concat(what, "ended the process with status ", WEXITSTATUS(status));
}

/// What the signal handler writes: it may take no memory.
struct SignalText {
  std::array<char, 640> letters;
  std::size_t length = 0;

  void set(const std::string& text) {
    length = std::min(text.size(), letters.size());
    std::copy_n(text.begin(), length, letters.begin());
  }
  void write() const { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, letters.data(), length); }
};
SignalText begin_text, crash_text, hang_text, exit_text;
std::atomic<bool> is_noted = false;

std::size_t signal_stack_bytes() { return std::max<std::size_t>(std::size_t{64} << 10, MINSIGSTKSZ); }

/// At an exit() that the noted code calls: nobody else would tell of it.
void tell_exit() {
  if (!is_noted) return;
  exit_text.write();
  ::_exit(1);
}

/// The signal comes again when this returns, now with nobody to catch it.
void tell_crash(int signal, siginfo_t* info, void* context) {
  SignalText fault = {};
  if (signal == SIGSEGV || signal == SIGBUS)
    fault.length = GuardedArray::describe_fault(*info, context, fault.letters.data(), fault.letters.size() - 1);
  if (signal == SIGALRM) {
    hang_text.write();
  } else if (fault.length == 0) {
    crash_text.write();
  } else {
    fault.letters[fault.length++] = '\n';
    begin_text.write();
    fault.write();
  }
  ::raise(signal);
}

}  // namespace

GuardedArray::GuardedArray(const char* name, std::size_t most_bytes)
    : name_(name), guard_(kGuardPages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
  const std::size_t inner = (most_bytes + kWatched + guard_) / guard_ * guard_;
  mapped_ = inner + 2 * guard_;
  void* const memory = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for ", most_bytes, " guarded bytes");
  mapping_ = static_cast<std::byte*>(memory);
  if (::mprotect(mapping_ + guard_, inner, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(mapping_, mapped_);
    fail("no memory for ", most_bytes, " guarded bytes");
  }
  living_arrays().push_back(this);
}

GuardedArray::~GuardedArray() {
  std::erase(living_arrays(), this);
  ::munmap(mapping_, mapped_);
}

void* GuardedArray::take(std::size_t bytes, Side side, std::size_t alignment) {
  std::byte *const begin = mapping_ + guard_, *const end = mapping_ + mapped_ - guard_;
  bytes_ = bytes;
  memory_ = side == Side::kEnd ? end - (bytes + alignment - 1) / alignment * alignment : begin;
  std::fill(std::max(begin, memory_ - kWatched), std::min(end, memory_ + bytes + kWatched), kPattern);
  return memory_;
}

std::string GuardedArray::damage() const {
  if (memory_ == nullptr) return {};
  const std::byte* const first = std::max(mapping_ + guard_, memory_ - kWatched);
  const std::byte* const last = std::min(mapping_ + mapped_ - guard_, memory_ + bytes_ + kWatched);
  for (const std::byte* byte = memory_ + bytes_; byte < last; ++byte)
    if (*byte != kPattern) return "wrote " + place_text(byte);
  for (const std::byte* byte = memory_ - 1; byte >= first; --byte)
    if (*byte != kPattern) return "wrote " + place_text(byte);
  return {};
}

std::string GuardedArray::place_text(const std::byte* address) const {
  char text[128];
  write_place(address, text, sizeof text);
  return text;
}

bool GuardedArray::write_place(const std::byte* address, char* text, std::size_t capacity) const {
  if (address < mapping_ || address >= mapping_ + mapped_ || memory_ == nullptr) return false;
  if (address < memory_)
    write_distance(static_cast<std::size_t>(memory_ - address), "before the begin", name_, text, capacity);
  else
    write_distance(static_cast<std::size_t>(address - (memory_ + bytes_)), "after the end", name_, text, capacity);
  return true;
}

std::size_t GuardedArray::describe_fault(const siginfo_t& info, const void* context, char* text, std::size_t capacity) {
  // Otherwise some process sent the signal, and there is no address.
  if (info.si_code <= 0) return 0;
  const std::string_view verb = verb_of(context);
  const auto* const place = static_cast<const std::byte*>(info.si_addr);
  const auto describes = [&](const GuardedArray* array) {
    return array->write_place(place, text + verb.size(), capacity - verb.size());
  };
  if (std::ranges::none_of(living_arrays(), describes)) return 0;
  std::ranges::copy(verb, text);
  return std::strlen(text);
}

void trial_step(const std::string& what) {
  if (trial_notes != nullptr) write_note(trial_notes->step, what);
}

std::string run_trial(const std::function<void()>& work) {
  void* const memory = ::mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for a process");
  trial_notes = new (memory) Notes{};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_child(work);
  int status = 0;
  const int error = child < 0 ? errno : 0;
  if (child > 0)
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  std::string result = error != 0 ? "" : ending_of(status, *trial_notes);
  trial_notes = nullptr;
  ::munmap(memory, sizeof(Notes));
  if (error != 0) fail("cannot start a process: ", std::strerror(error));
  return result;
}

SignalStack::SignalStack() {
  stack_t before = {};
  // Sanitizers have one of their own.
  if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
  memory_ = std::make_unique<std::byte[]>(signal_stack_bytes());
  stack_t own = {};
  own.ss_sp = memory_.get();
  own.ss_size = signal_stack_bytes();
  ::sigaltstack(&own, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

CrashNote::CrashNote(const std::string& what, int limit_seconds) {
  const std::string begin = "miniqat bench: " + what + ": ";
  begin_text.set(begin);
  crash_text.set(begin + "crashed\n");
  hang_text.set(concat(begin, "did not end within ", counted(limit_seconds, "second"), "\n"));
  struct sigaction action = {};
  action.sa_sigaction = tell_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_SIGINFO | SA_ONSTACK);
  thread_local const SignalStack stack;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  exit_text.set(begin + "ended the process\n");
  [[maybe_unused]] static const bool watches_exits = std::atexit(tell_exit) == 0 && ::at_quick_exit(tell_exit) == 0;
  is_noted = true;
  ::alarm(static_cast<unsigned>(limit_seconds));
}

CrashNote::~CrashNote() {
  is_noted = false;
  ::alarm(0);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace miniqat::bench
