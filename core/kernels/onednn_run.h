#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/kernels/onednn_kernel.h"
#include "core/team/team.h"
#include "core/text/error.h"

/// The compiled kernels of a thread, and how they run. Only the implementations of core/kernels/onednn.h include this.
namespace miniqat::onednn {

enum class Operation { kForward, kBackwardInput, kBackwardFilter, kMultiply };

/// Operation, thread count (oneDNN plans the work for the threads there are) and everything else a kernel depends on.
class Key {
 public:
  explicit Key(Operation operation);

  void append(std::int64_t word) { words_.at(size_++) = word; }
  template <class Words>
  void append_all(const Words& words) {
    for (const std::int64_t word : words) append(word);
  }

  friend bool operator==(const Key&, const Key&) = default;

  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

 private:
  std::array<std::int64_t, 24> words_{};
  std::size_t size_ = 0;
};

/// More shapes than any model has; a program that keeps on changing shapes must not keep on growing.
inline constexpr std::size_t kMaxKernels = 1024;

/// What a thread keeps for each key, made at its first use.
template <class Value>
class Kept {
 public:
  template <class Make>
  Value& get(const Key& key, const Make& make) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    Value made = make();
    if (values_.size() >= kMaxKernels) values_.clear();
    return values_.emplace(key, std::move(made)).first->second;
  }
  const auto& all() const { return values_; }

 private:
  std::unordered_map<Key, Value, Key::Hash> values_;
};

struct CompiledKernel {
  /// For errors and lists.
  std::string description;
  Kernel kernel;
};

/// Each thread has its own, as it has its own scratch memory.
Kept<CompiledKernel>& kernels_of_thread();

/// Runs the kernel for `key`, compiling it if need be. `describe` gives the text for errors. `parts`: of its regions;
/// products of matrices (for convolutions, too, where nothing better is known) share work out as they go.
template <class Describe, class Compile>
void run(const Key& key, const Describe& describe, const Compile& compile, TeamParts parts,
         std::initializer_list<const void*> addresses) {
  try {
    Kernel& kernel = kernels_of_thread().get(key, [&] { return CompiledKernel{describe(), compile()}; }).kernel;
    std::optional<IndependentRegions> independent;
    if (parts == TeamParts::kIndependent && kernel.implementation().find("gemm") == std::string::npos)
      independent.emplace();
    kernel.run(addresses);
  } catch (const dnnl::error& error) {
    fail("oneDNN failed in ", describe(), ": ", error.what());
  }
}

/// Calls body(part) for parts that run kernels of their own, each for its thread alone. At the first time each thread
/// computes a part, so that all have compiled their kernels before a later step.
template <class Body>
void run_independent_parts(int parts, bool first_time, const Body& body) {
  const auto in_its_thread = [&](int part) {
    if (first_time) team_barrier();
    body(part);
  };
  run_in_team(
      parts, [](void* erased, int part) { (*static_cast<decltype(in_its_thread)*>(erased))(part); },
      const_cast<void*>(static_cast<const void*>(&in_its_thread)),
      first_time ? TeamParts::kMayWait : TeamParts::kIndependent);
}

}  // namespace miniqat::onednn
