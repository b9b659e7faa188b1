#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace miniqat {

inline constexpr std::size_t kMemoryAlignment = 64;
inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

struct FreeMemory {
  std::size_t alignment = kMemoryAlignment;
  void operator()(std::byte* memory) const noexcept { operator delete (memory, std::align_val_t{alignment}); }
};
using AlignedMemory = std::unique_ptr<std::byte, FreeMemory>;

/// Memory of tensors, plans and scratch: at least `bytes` from a multiple of kMemoryAlignment on, not initialised; null
/// when there is no more.
///
/// From kLargePage on it begins at a multiple of that, and Linux is asked for pages of this size (transparent huge
/// pages; many systems give them only to those that ask): a pass over a tensor then needs a 512th of the look-ups of
/// pages.
AlignedMemory allocate_memory(std::size_t bytes);

/// Rounded up to whole alignments.
constexpr std::size_t aligned_size(std::size_t bytes) {
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace miniqat
