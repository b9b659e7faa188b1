#pragma once

#include <cstddef>
#include <span>

namespace miniqat {

/// Working memory for the length of a scope, from a stack of its own per thread that grows when it must and is kept: a
/// training step that has run once needs no allocation any more. 64-byte aligned, not initialised. Scopes nest.
///
///   ScratchScope scope;
///   std::span<float> sums = scope.take<float>(channels);
class ScratchScope {
 public:
  ScratchScope();
  ~ScratchScope();
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

  /// Valid until this scope ends. T must need no constructor.
  template <class T>
  std::span<T> take(std::size_t count) {
    return {static_cast<T*>(take_bytes(count * sizeof(T))), count};
  }
  /// Takes memory in which every element is `value`.
  template <class T>
  std::span<T> filled(std::size_t count, T value) {
    const std::span<T> memory = take<T>(count);
    for (T& element : memory) element = value;
    return memory;
  }

 private:
  void* take_bytes(std::size_t bytes);

  std::size_t block_;
  std::size_t used_;
};

}  // namespace miniqat
