#include "core/kernels/onednn_run.h"

#include "core/threads/parallel.h"

namespace miniqat::onednn {

Key::Key(Operation operation) {
  append(static_cast<std::int64_t>(operation));
  append(in_team() ? 1 : thread_count());
}

std::size_t Key::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < key.size_; ++i) {
    hash = (hash ^ static_cast<std::uint64_t>(key.words_[i])) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

Kept<CompiledKernel>& kernels_of_thread() {
  thread_local Kept<CompiledKernel> kernels;
  return kernels;
}

}  // namespace miniqat::onednn
