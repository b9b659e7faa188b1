#pragma once

/// Compiled primitives and how they run, behind core/kernels/onednn.h. Only its implementations include this.

#include <oneapi/dnnl/dnnl_version.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/team/team.h"
#include "core/tensors/bfloat16.h"
#include "core/text/error.h"

namespace miniqat::onednn {

const dnnl::engine& engine();

/// What keeps oneDNN to the instructions that our own loops keep to. Nothing at the best levels, unless the user asked
/// for a cap: what a CPU has besides, bfloat16 for instance, is no level of its own.
std::optional<dnnl::cpu_isa> cap_of(IsaLevel level, std::optional<IsaLevel> asked);
/// exact_byte() of x86-64 CPUs on which oneDNN uses these instructions. Each set's bits are among those of the sets
/// that contain it.
int exact_byte_of(dnnl::cpu_isa isa);

/// Whether kernels for these instructions multiply bfloat16.
bool has_bfloat16(dnnl::cpu_isa isa);

/// The type of factors.
template <class T>
inline constexpr auto kTypeOf = dnnl::memory::data_type::f32;
template <>
inline constexpr auto kTypeOf<Bfloat16> = dnnl::memory::data_type::bf16;
template <>
inline constexpr auto kTypeOf<std::uint8_t> = dnnl::memory::data_type::u8;
template <>
inline constexpr auto kTypeOf<std::int8_t> = dnnl::memory::data_type::s8;

/// A tensor that a kernel reads or writes, in the layout in which the caller has it.
struct Operand {
  int argument;
  dnnl::memory::desc layout;
  bool written = false;
};

/// A compiled primitive with the reorders that bring operands into the layouts it chose and back. Running it allocates
/// nothing of ours but scratch memory, which all kernels of a thread share and which grows at a kernel's first run at
/// most. For the thread that made it.
class Kernel {
 public:
  template <class Description>
  Kernel(const Description& description, const std::vector<Operand>& operands)
      : primitive_(description), implementation_(description.impl_info_str()) {
    bound_.reserve(operands.size());
    for (const Operand& operand : operands)
      add(operand, description.query_md(dnnl::query::exec_arg_md, operand.argument));
    add_scratchpad(description.scratchpad_desc());
  }
  // Argument lists hold handles of the memory objects beside them; these move along.
  Kernel(Kernel&&) = default;
  Kernel& operator=(Kernel&&) = default;

  const std::string& implementation() const { return implementation_; }

  /// The operands' addresses in the order of construction.
  void run(std::initializer_list<const void*> addresses);

 private:
  struct Bound {
    bool written;
    dnnl::memory outside;
    dnnl::memory inside;
    std::optional<dnnl::reorder> reorder;
    /// The offset of `inside` in the scratch memory.
    std::size_t offset = 0;
  };

  void add(const Operand& operand, const dnnl::memory::desc& wanted);
  void add_scratchpad(const dnnl::memory::desc& layout);
  std::size_t reserve(std::size_t bytes);
  void move_to(std::byte* base);
  void move_apart(ScratchScope& scratch);

  dnnl::primitive primitive_;
  std::string implementation_;
  std::vector<Bound> bound_;
  dnnl::memory scratchpad_;
  std::size_t scratchpad_offset_ = 0;
  std::size_t scratch_bytes_ = 0;
  /// Where the scratch memory was at the last run.
  std::byte* base_ = nullptr;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Attributes of all our primitives: the scratchpad is the caller's.
dnnl::primitive_attr caller_owns_scratch();

// Version 3 dropped the operation descriptors of version 2; everything else that we use is the same in both.
#if DNNL_VERSION_MAJOR >= 3
template <class Primitive, class... Arguments>
auto describe_primitive(const Arguments&... arguments) {
  return typename Primitive::primitive_desc(engine(), arguments..., caller_owns_scratch());
}
template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const Hint& hint, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(engine(), arguments..., hint, caller_owns_scratch());
}
#else
template <class Primitive, class... Arguments>
auto describe_primitive(const Arguments&... arguments) {
  return typename Primitive::primitive_desc({arguments...}, caller_owns_scratch(), engine());
}
template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const Hint& hint, const Arguments&... arguments) {
  return typename Primitive::primitive_desc({arguments...}, caller_owns_scratch(), engine(), hint);
}
#endif

enum class Operation {
  kForward,
  kBackwardInput,
  kBackwardFilter,
  kMultiply,
  kIntegerForward,
  kIntegerBackwardInput,
  kIntegerBackwardFilter,
  kIntegerMultiply
};

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
  std::array<std::int64_t, 32> words_{};
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
