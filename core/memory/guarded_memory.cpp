#include "core/memory/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

constexpr std::size_t kAlignment = 64;
/// On each side: more than a row of pixels, so that a stride too far is caught as well.
constexpr std::size_t kGuardPages = 16;
/// As a float32 and as any half of a float64 a quiet NaN; no byte is the next one, 0 or 255, as overruns often are.
constexpr std::array<unsigned char, 4> kPattern = {0xa5, 0x5a, 0xe9, 0x7f};

struct GuardedBlock {
  std::byte* mapping = nullptr;
  std::size_t mapped = 0;
  std::byte* pages = nullptr;
  std::size_t page_bytes = 0;
  std::size_t bytes = 0;
};

/// Blocks by the address of their memory.
using Blocks = std::map<std::byte*, GuardedBlock>;

std::mutex& blocks_mutex() {
  static std::mutex& instance = *new std::mutex;
  return instance;
}

/// Outlives every static that holds a tensor.
Blocks& blocks() {
  static Blocks& instance = *new Blocks;
  return instance;
}

/// Up to this number of blocks all are checked after each step.
constexpr std::size_t kFewBlocks = 256;
/// Otherwise this number of those that are not the step's own.
constexpr int kCheckedInTurn = 64;

/// All of these under the mutex of the blocks.
struct Checking {
  /// Taken since the last step that ended.
  std::vector<std::byte*> fresh;
  /// The last that was checked in turn.
  std::byte* last = nullptr;
  std::int64_t count = 0;
};

Checking& checking() {
  static Checking& instance = *new Checking;
  return instance;
}

/// What a thread runs that begins steps. It keeps its place for as long as it lives, so that no other writes there.
struct Running {
  std::atomic<bool> taken = false;
  std::array<char, 512> text{};
};

/// More threads with sessions than there are places here go unnamed.
constexpr std::size_t kMostNamed = 64;
std::array<Running, kMostNamed>& running_steps() {
  static auto& instance = *new std::array<Running, kMostNamed>;
  return instance;
}

/// This thread's; null in one that has begun no step, as the workers are.
thread_local Running* own_step = nullptr;

/// Gives the place back when its thread ends.
struct Place {
  Place() {
    for (Running& one : running_steps())
      if (!one.taken.exchange(true)) {
        own_step = &one;
        return;
      }
  }
  ~Place() {
    Running* former = std::exchange(own_step, nullptr);
    if (former == nullptr) return;
    former->text[0] = '\0';
    former->taken = false;
  }
  Place(const Place&) = delete;
};

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// Some of the pattern as it goes on from `place`.
constexpr std::size_t kMostAtOnce = 4096;
const std::byte* pattern_from(const std::byte* place) {
  static const auto filled = [] {
    std::array<std::byte, kMostAtOnce + kPattern.size()> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte{kPattern[i % kPattern.size()]};
    return bytes;
  }();
  return filled.data() + reinterpret_cast<std::uintptr_t>(place) % kPattern.size();
}

void fill(std::byte* begin, std::byte* end) {
  for (std::size_t length; begin < end; begin += length) {
    length = std::min(static_cast<std::size_t>(end - begin), kMostAtOnce);
    std::memcpy(begin, pattern_from(begin), length);
  }
}

/// The first byte that is not the pattern's; `end` when all are.
const std::byte* first_changed(const std::byte* begin, const std::byte* end) {
  for (std::size_t length; begin < end; begin += length) {
    length = std::min(static_cast<std::size_t>(end - begin), kMostAtOnce);
    const std::byte* pattern = pattern_from(begin);
    if (std::memcmp(begin, pattern, length) != 0) return std::mismatch(begin, begin + length, pattern).first;
  }
  return end;
}

/// Builds a line without allocating: it may be written from a signal handler.
class Line {
 public:
  Line& text(std::string_view more) {
    const std::size_t length = std::min(more.size(), text_.size() - 1 - size_);
    std::copy_n(more.begin(), length, text_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += length;
    return *this;
  }
  Line& number(std::size_t value) {
    std::array<char, 24> digits;
    std::size_t first = digits.size();
    do digits[--first] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return text({digits.data() + first, digits.size() - first});
  }
  void write() {
    text_[size_++] = '\n';
    // There is nobody left to tell of a failure.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_.data(), size_);
  }

 private:
  std::array<char, 1024> text_{};
  std::size_t size_ = 0;
};

enum class Suspects {
  /// The step of this thread; every step, where it has none: a worker does not know whose it is.
  kOwn,
  kAll,
};

void say_what_runs(Line& line, Suspects suspects) {
  std::string_view before;
  for (const Running& one : running_steps()) {
    const bool suspect = suspects == Suspects::kAll || own_step == nullptr || own_step == &one;
    if (!suspect || !one.taken || one.text[0] == '\0') continue;
    line.text(before).text(one.text.data());
    before = " or ";
  }
  if (before.empty()) line.text("no step");
}

/// What is known of the time of a fault: of memory that the step had, and of other memory, which may be damaged for
/// longer.
constexpr std::string_view kSince = "in or since ";
constexpr std::string_view kNoticed = "noticed after ";

void say_where(Line& line, const std::byte* memory, const GuardedBlock& block, const std::byte* touched,
               Suspects suspects, std::string_view when = kSince) {
  if (touched < memory)
    line.number(static_cast<std::size_t>(memory - touched)).text(" bytes before the begin");
  else
    line.number(static_cast<std::size_t>(touched - memory) - block.bytes).text(" bytes after the end");
  line.text(" of a buffer of ").number(block.bytes).text(" bytes, ").text(when);
  say_what_runs(line, suspects);
}

[[noreturn]] void stop_for_pattern(const std::byte* memory, const GuardedBlock& block, const std::byte* touched,
                                   std::string_view when) {
  Line line;
  line.text("MINIQAT_GUARD: overwritten ");
  // It is found at the end of some step, which need not be that of the thread that wrote.
  say_where(line, memory, block, touched, Suspects::kAll, when);
  line.write();
  std::abort();
}

void check(std::byte* memory, const GuardedBlock& block, std::string_view when) {
  ++checking().count;
  const auto check_range = [&](const std::byte* begin, const std::byte* end) {
    const std::byte* changed = first_changed(begin, end);
    if (changed != end) stop_for_pattern(memory, block, changed, when);
  };
  check_range(memory + block.bytes, block.pages + block.page_bytes);
  check_range(block.pages, memory);
}

void check_every_block(std::string_view when) {
  for (const auto& [memory, block] : blocks()) check(memory, block, when);
}

/// The block that the address is in or right behind, as that of an empty tensor is.
void check_block_of(const void* address) {
  auto* place = static_cast<std::byte*>(const_cast<void*>(address));
  const auto next = blocks().upper_bound(place);
  if (next == blocks().begin()) return;
  const auto& [memory, block] = *std::prev(next);
  if (place <= memory + block.bytes) check(memory, block, kSince);
}

void check_some_in_turn() {
  auto next = blocks().upper_bound(checking().last);
  for (int i = 0; i < kCheckedInTurn; ++i, ++next) {
    if (next == blocks().end()) next = blocks().begin();
    check(next->first, next->second, kNoticed);
    checking().last = next->first;
  }
}

/// Looks through the blocks without the lock: the thread that holds it may be this one, and the process ends anyway.
void stop_for_page(int signal, siginfo_t* info, void* /*context*/) {
  const auto* touched = static_cast<const std::byte*>(info->si_addr);
  Line line;
  line.text("MINIQAT_GUARD: touched ");
  bool found = false;
  for (const auto& [memory, block] : blocks()) {
    found = touched >= block.mapping && touched < block.mapping + block.mapped;
    if (found) {
      say_where(line, memory, block, touched, Suspects::kOwn);
      break;
    }
  }
  if (!found) {
    line.text("memory that is not a buffer (any more), in ");
    say_what_runs(line, Suspects::kOwn);
  }
  line.write();
  ::raise(signal);
}

void install_handler() {
  struct sigaction action = {};
  action.sa_sigaction = stop_for_page;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

Guard asked_for() {
  const char* variable = std::getenv("MINIQAT_GUARD");
  const std::string_view mode = variable == nullptr ? "" : variable;
  if (mode.empty()) return Guard::kOff;
  if (mode != "after" && mode != "before") fail("MINIQAT_GUARD must be after or before, is ", quote(mode));
  install_handler();
  return mode == "after" ? Guard::kAfter : Guard::kBefore;
}

}  // namespace

Guard guard() {
  static const Guard mode = asked_for();
  return mode;
}

void* allocate_guarded(std::size_t bytes) {
  GuardedBlock block{.bytes = bytes};
  const std::size_t guard_bytes = kGuardPages * page_size();
  block.page_bytes = rounded_up(std::max<std::size_t>(bytes, 1), page_size());
  block.mapped = block.page_bytes + 2 * guard_bytes;
  void* mapping = ::mmap(nullptr, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  block.mapping = static_cast<std::byte*>(mapping);
  block.pages = block.mapping + guard_bytes;
  if (::mprotect(block.pages, block.page_bytes, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(mapping, block.mapped);
    return nullptr;
  }
  const std::size_t gap = guard() == Guard::kAfter ? block.page_bytes - rounded_up(bytes, kAlignment) : 0;
  std::byte* memory = block.pages + gap;
  fill(block.pages, memory);
  fill(memory + bytes, block.pages + block.page_bytes);
  const std::scoped_lock lock(blocks_mutex());
  blocks().emplace(memory, block);
  checking().fresh.push_back(memory);
  return memory;
}

void release_guarded(void* memory) noexcept {
  if (memory == nullptr) return;
  auto* place = static_cast<std::byte*>(memory);
  const std::scoped_lock lock(blocks_mutex());
  const auto found = blocks().find(place);
  if (found == blocks().end()) std::abort();
  check(place, found->second, kSince);
  ::munmap(found->second.mapping, found->second.mapped);
  blocks().erase(found);
}

void poison(std::span<std::byte> memory) { fill(memory.data(), memory.data() + memory.size()); }

void GuardedStep::begin(std::string_view what) {
  thread_local const Place place;
  if (own_step == nullptr) return;
  std::array<char, 512>& text = own_step->text;
  const std::size_t length = std::min(what.size(), text.size() - 1);
  std::memcpy(text.data(), what.data(), length);
  text[length] = '\0';
}

void GuardedStep::end() const noexcept {
  const std::scoped_lock lock(blocks_mutex());
  const std::vector<std::byte*> fresh = std::exchange(checking().fresh, {});
  if (blocks().size() <= kFewBlocks) return check_every_block(kSince);
  for (const void* address : given_) check_block_of(address);
  for (const std::byte* address : fresh) check_block_of(address);
  check_some_in_turn();
}

void GuardedRun::check_all() noexcept {
  const std::scoped_lock lock(blocks_mutex());
  check_every_block(kNoticed);
}

std::int64_t guarded_checks() {
  const std::scoped_lock lock(blocks_mutex());
  return checking().count;
}

}  // namespace miniqat
