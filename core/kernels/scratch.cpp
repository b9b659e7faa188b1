#include "core/kernels/scratch.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "core/memory/aligned_memory.h"
#include "core/memory/guarded_memory.h"

namespace miniqat {
namespace {

struct Block {
  AlignedMemory memory;
  std::size_t bytes = 0;
};

/// Blocks fill up in order. Memory in use never moves: a full stack gets a further block.
struct Stack {
  std::vector<Block> blocks;
  /// The block that is being filled, and how far.
  std::size_t block = 0;
  std::size_t used = 0;
  /// While guarding, in place of blocks: what has been taken, each on its own, until its scope ends.
  std::vector<void*> guarded;
};

Stack& stack() {
  thread_local Stack instance;
  return instance;
}

constexpr std::size_t kFirstBlock = std::size_t{1} << 16;

}  // namespace

ScratchScope::ScratchScope() : block_(is_guarding() ? stack().guarded.size() : stack().block), used_(stack().used) {}

ScratchScope::~ScratchScope() {
  if (is_guarding()) {
    for (std::vector<void*>& taken = stack().guarded; taken.size() > block_; taken.pop_back())
      release_guarded(taken.back());
    return;
  }
  stack().block = block_;
  stack().used = used_;
}

void* ScratchScope::take_bytes(std::size_t bytes) {
  Stack& s = stack();
  if (is_guarding()) {
    void* memory = s.guarded.emplace_back(allocate_guarded(bytes));
    if (memory == nullptr) throw std::bad_alloc();
    poison({static_cast<std::byte*>(memory), bytes});
    return memory;
  }
  bytes = aligned_size(bytes);
  while (s.block < s.blocks.size() && s.blocks[s.block].bytes - s.used < bytes) {
    ++s.block;
    s.used = 0;
  }
  if (s.block == s.blocks.size()) {
    const std::size_t last = s.blocks.empty() ? kFirstBlock / 2 : s.blocks.back().bytes;
    const std::size_t size = std::max(bytes, 2 * last);
    AlignedMemory memory = allocate_memory(size);
    if (memory == nullptr) throw std::bad_alloc();
    s.blocks.push_back({std::move(memory), size});
  }
  void* result = s.blocks[s.block].memory.get() + s.used;
  s.used += bytes;
  return result;
}

}  // namespace miniqat
