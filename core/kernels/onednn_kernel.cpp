#include "core/kernels/onednn_kernel.h"

#include <new>
#include <span>
#include <utility>

#include "core/memory/aligned_memory.h"
#include "core/memory/guarded_memory.h"
#include "core/platform/interruption.h"
#include "core/threads/parallel.h"

namespace miniqat::onednn {
namespace {

using dnnl::memory;

dnnl::stream& stream() {
  thread_local dnnl::stream instance(engine());
  return instance;
}

/// The one scratch buffer of this thread, grown to at least `bytes`. Its old contents and address are lost when it
/// grows.
std::byte* scratch(std::size_t bytes) {
  thread_local AlignedMemory buffer;
  thread_local std::size_t size = 0;
  if (size < bytes) {
    buffer.reset();
    size = 0;
    buffer = allocate_memory(bytes);
    if (buffer == nullptr) throw std::bad_alloc();
    size = bytes;
  }
  return buffer.get();
}

/// Calls the C interface: the C++ one builds a map and a vector of the arguments at every call.
void execute(const dnnl::primitive& primitive, std::span<const dnnl_exec_arg_t> arguments) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream().get(), static_cast<int>(arguments.size()), arguments.data()),
      "could not execute a primitive");
}

void execute(const dnnl::reorder& reorder, const memory& from, const memory& to) {
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
  execute(reorder, arguments);
}

/// Whether these instructions include those.
bool has(dnnl::cpu_isa isa, dnnl::cpu_isa other) {
  const auto bits = static_cast<unsigned>(other);
  return (static_cast<unsigned>(isa) & bits) == bits;
}

}  // namespace

std::optional<dnnl::cpu_isa> cap_of(IsaLevel level, std::optional<IsaLevel> asked) {
  switch (level) {
    case IsaLevel::kBaseline:
      return dnnl::cpu_isa::sse41;
    case IsaLevel::kAvx2:
      return dnnl::cpu_isa::avx2;
    case IsaLevel::kAvx2Vnni:
      return dnnl::cpu_isa::avx2_vnni;
    default:
      break;
  }
  if (!asked || *asked == IsaLevel::kAmx) return {};
  return level == IsaLevel::kAvx512 ? dnnl::cpu_isa::avx512_core : dnnl::cpu_isa::avx512_core_vnni;
}

int exact_byte_of(dnnl::cpu_isa isa) {
  return has(isa, dnnl::cpu_isa::avx512_core_vnni) || has(isa, dnnl::cpu_isa::avx2_vnni) ? 128 : 64;
}

bool has_bfloat16(dnnl::cpu_isa isa) { return has(isa, dnnl::cpu_isa::avx512_core_bf16); }

const dnnl::engine& engine() {
  static const dnnl::engine instance = [] {
    // oneDNN takes the setting before its first kernel only.
    if (const auto cap = cap_of(isa_level(), isa_cap())) dnnl::set_max_cpu_isa(*cap);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return instance;
}

dnnl::primitive_attr caller_owns_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void Kernel::add(const Operand& operand, const memory::desc& wanted) {
  const memory outside(operand.layout, engine(), DNNL_MEMORY_NONE);
  Bound bound{.written = operand.written, .outside = outside, .inside = outside, .reorder = {}};
  if (wanted != operand.layout) {
    bound.inside = memory(wanted, engine(), DNNL_MEMORY_NONE);
    bound.offset = reserve(wanted.get_size());
    bound.reorder = operand.written ? dnnl::reorder(bound.inside, outside) : dnnl::reorder(outside, bound.inside);
  }
  arguments_.push_back({operand.argument, bound.inside.get()});
  bound_.push_back(std::move(bound));
}

void Kernel::add_scratchpad(const memory::desc& layout) {
  scratchpad_ = memory(layout, engine(), DNNL_MEMORY_NONE);
  scratchpad_offset_ = reserve(layout.get_size());
  arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
}

std::size_t Kernel::reserve(std::size_t bytes) {
  return std::exchange(scratch_bytes_, scratch_bytes_ + aligned_size(bytes));
}

/// Only when the scratch memory has moved: in version 2 it costs a stream and a pass over the padding of a layout.
void Kernel::move_to(std::byte* base) {
  if (base == base_) return;
  for (Bound& bound : bound_)
    if (bound.reorder) bound.inside.set_data_handle(base + bound.offset);
  scratchpad_.set_data_handle(base + scratchpad_offset_);
  base_ = base;
}

/// In a guarded place for each, which ends with `scratch`.
void Kernel::move_apart(ScratchScope& scratch) {
  const auto place = [&](memory& moved) {
    moved.set_data_handle(scratch.take<std::byte>(moved.get_desc().get_size()).data());
  };
  for (Bound& bound : bound_)
    if (bound.reorder) place(bound.inside);
  place(scratchpad_);
}

void Kernel::run(std::initializer_list<const void*> addresses) {
  ScratchScope guarded;
  const BlockedSignals blocked;
  is_guarding() ? move_apart(guarded) : move_to(scratch(scratch_bytes_));
  auto address = addresses.begin();
  for (Bound& bound : bound_) {
    // oneDNN's memory has no const; operands that are not `written` are only read.
    bound.outside.set_data_handle(const_cast<void*>(*address++));
    if (bound.reorder && !bound.written) execute(*bound.reorder, bound.outside, bound.inside);
  }
  execute(primitive_, arguments_);
  for (Bound& bound : bound_)
    if (bound.reorder && bound.written) execute(*bound.reorder, bound.inside, bound.outside);
  stream().wait();
}

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
