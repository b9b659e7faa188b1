#include "bench/guarded_array.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/text/error.h"

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

}  // namespace miniqat::bench
