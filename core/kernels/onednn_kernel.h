#pragma once

#include <oneapi/dnnl/dnnl_version.h>

#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernels/scratch.h"

/// One compiled primitive; it runs behind core/kernels/onednn.h. Only that file's implementation includes this one.
namespace miniqat::onednn {

const dnnl::engine& engine();

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

}  // namespace miniqat::onednn
