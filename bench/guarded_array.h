#pragma once

#include <signal.h>

#include <cstddef>
#include <span>
#include <string>

namespace miniqat::bench {

/// Memory between pages that cannot be touched, for kernels of others: who reads or writes beyond one end crashes (a
/// Trial says where), who writes beyond the other end damages a pattern. (core/memory/guarded_memory.h does this for
/// the whole program, and aligns to 64 bytes; here a float may be the last or the first of a page.)
class GuardedArray {
 public:
  /// Where the array touches the page: the other end has the pattern.
  enum class Side { kEnd, kBegin };

  /// `name` is a literal: "x". Throws Error when there is no memory.
  GuardedArray(const char* name, std::size_t most_bytes);
  ~GuardedArray();
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;

  /// Memory for `bytes`, at most most_bytes, right at one end; what it held before is gone. `alignment`, at most 64,
  /// may leave a gap there, which has the pattern.
  void* take(std::size_t bytes, Side side, std::size_t alignment = 1);
  std::span<float> floats(std::size_t count, Side side) {
    return {static_cast<float*>(take(count * sizeof(float), side)), count};
  }
  /// "wrote 4 bytes before the begin of y", by the pattern around what take() gave last; empty when all is well.
  std::string damage() const;

  /// What a fault did, for a handler of SIGSEGV or SIGBUS with the `info` and `context` that it was given: "wrote 8
  /// bytes after the end of y", "read right after the end of y". Returns its length; 0 when the address is not near any
  /// array.
  static std::size_t describe_fault(const siginfo_t& info, const void* context, char* text, std::size_t capacity);

 private:
  bool write_place(const std::byte* address, char* text, std::size_t capacity) const;
  std::string place_text(const std::byte* address) const;

  const char* name_;
  std::byte* mapping_;
  std::size_t mapped_;
  std::size_t guard_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace miniqat::bench
