#include "core/memory/aligned_memory.h"

#include <sys/mman.h>

namespace miniqat {

AlignedMemory allocate_memory(std::size_t bytes) {
  const std::size_t alignment = bytes < kLargePage ? kMemoryAlignment : kLargePage;
  void* memory = operator new (bytes, std::align_val_t{alignment}, std::nothrow);
  // Refused where the system has no such pages; any pages do.
  if (memory != nullptr && alignment == kLargePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), FreeMemory{alignment}};
}

}  // namespace miniqat
