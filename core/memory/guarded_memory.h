#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// A test mode for what sanitizers cannot see: generated code (oneDNN's kernels) that writes where it must not.
/// MINIQAT_GUARD=after or =before in the environment turns it on. Every tensor, every buffer of a plan and every piece
/// of scratch memory is then a mapping of its own between pages that cannot be touched. It ends (after) or begins
/// (before) right at them, as far as the alignment of 64 bytes lets it. A pattern fills the gaps on either side. The
/// pattern is checked after each step that was given the memory or took it, at the end of each run of a graph or model,
/// and when the memory is given back. A step that touches a page or such a pattern ends the process, and the message
/// names the step. A pattern overwritten from afar is found at the end of the run at the latest, and the message says
/// that. Off, all this costs a branch at each allocation.
namespace miniqat {

enum class Guard { kOff, kAfter, kBefore };

/// The value of MINIQAT_GUARD, read at the first call. Throws Error for anything but "after", "before" or nothing.
Guard guard();
inline bool is_guarding() { return guard() != Guard::kOff; }

/// Guarded zeros, 64-byte aligned; only while is_guarding(). Null when there is no more memory. From and to any thread.
void* allocate_guarded(std::size_t bytes);
/// Checks the pattern; what still uses the memory then is stopped, too. Null is fine.
void release_guarded(void* memory) noexcept;

/// Fills memory that promises no contents with NaNs (as bytes: large numbers), so that a read before the first write
/// shows.
void poison(std::span<std::byte> memory);

/// While one lives, reports name this step. At its end it checks the patterns around the memory that the step was given
/// and that it took, and a share of the others, in turns; all, if there are few. So a step costs the same whatever
/// memory others have. Does nothing unless is_guarding(). `describe` gives the text, `given` a std::vector<const void*>
/// of addresses in guarded memory (others, and null, are ignored).
class GuardedStep {
 public:
  template <class Describe>
  explicit GuardedStep(const Describe& describe) : GuardedStep(describe, [] { return std::vector<const void*>(); }) {}
  template <class Describe, class Given>
  GuardedStep(const Describe& describe, const Given& given) {
    if (!is_guarding()) return;
    begin(describe());
    given_ = given();
  }
  ~GuardedStep() {
    if (is_guarding()) end();
  }
  GuardedStep(const GuardedStep&) = delete;
  GuardedStep& operator=(const GuardedStep&) = delete;

 private:
  static void begin(std::string_view what);
  void end() const noexcept;

  std::vector<const void*> given_;
};

/// A run of many steps: at its end the pattern around all memory is checked.
class GuardedRun {
 public:
  GuardedRun() = default;
  ~GuardedRun() {
    if (is_guarding()) check_all();
  }
  GuardedRun(const GuardedRun&) = delete;
  GuardedRun& operator=(const GuardedRun&) = delete;

 private:
  static void check_all() noexcept;
};

/// How often the pattern around some memory was checked so far. For tests.
std::int64_t guarded_checks();

}  // namespace miniqat
