#include "core/onednn.h"

#include <oneapi/dnnl/dnnl_version.h>

#include <functional>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/instruction_set.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace miniqat::onednn {
namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;

/// oneDNN keeps to the instruction sets that our own loops keep to. It can only be told before its first kernel.
void cap_instruction_set() {
  if (instruction_set() == InstructionSet::kBaseline) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  if (instruction_set() == InstructionSet::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
}

const dnnl::engine& engine() {
  static const dnnl::engine instance = [] {
    cap_instruction_set();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return instance;
}

dnnl::stream& stream() {
  static dnnl::stream instance(engine());
  return instance;
}

/// Scratch memory is ours, so that all kernels share one buffer instead of owning one each.
dnnl::primitive_attr caller_owns_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

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

std::size_t aligned(std::size_t bytes) {
  return (bytes + Tensor::kAlignment - 1) / Tensor::kAlignment * Tensor::kAlignment;
}

/// The one scratch buffer, grown to at least `bytes`. Its old contents and address are lost when it grows.
std::byte* scratch(std::size_t bytes) {
  struct Release {
    void operator()(std::byte* memory) const { operator delete (memory, std::align_val_t{Tensor::kAlignment}); }
  };
  static std::unique_ptr<std::byte, Release> buffer;
  static std::size_t size = 0;
  if (size < bytes) {
    buffer.reset();
    size = 0;
    buffer.reset(static_cast<std::byte*>(operator new (bytes, std::align_val_t{Tensor::kAlignment})));
    size = bytes;
  }
  return buffer.get();
}

/// A tensor that a kernel reads or writes, in the layout in which the caller has it.
struct Operand {
  int argument;
  memory::desc layout;
  bool written = false;
};

/// A compiled primitive with the reorders that bring operands into the layouts it chose and back.
class Kernel {
 public:
  template <class Description>
  Kernel(const Description& description, const std::vector<Operand>& operands)
      : primitive_(description), implementation_(description.impl_info_str()) {
    for (const Operand& operand : operands)
      add(operand, description.query_md(dnnl::query::exec_arg_md, operand.argument));
    scratchpad_ = memory(description.scratchpad_desc(), engine(), DNNL_MEMORY_NONE);
    scratchpad_offset_ = reserve(description.scratchpad_desc().get_size());
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad_);
  }

  const std::string& implementation() const { return implementation_; }

  /// The operands' addresses in the order of construction.
  void run(std::initializer_list<const void*> addresses) {
    std::byte* base = scratch(scratch_bytes_);
    auto address = addresses.begin();
    for (Bound& bound : bound_) {
      // oneDNN's memory has no const; operands that are not `written` are only read.
      bound.outside.set_data_handle(const_cast<void*>(*address++));
      if (!bound.reorder) continue;
      bound.inside.set_data_handle(base + bound.offset);
      if (!bound.written) bound.reorder->execute(stream(), bound.outside, bound.inside);
    }
    scratchpad_.set_data_handle(base + scratchpad_offset_);
    primitive_.execute(stream(), arguments_);
    for (Bound& bound : bound_)
      if (bound.reorder && bound.written) bound.reorder->execute(stream(), bound.inside, bound.outside);
    stream().wait();
  }

 private:
  struct Bound {
    bool written;
    memory outside;
    memory inside;
    std::optional<dnnl::reorder> reorder;
    std::size_t offset = 0;
  };

  void add(const Operand& operand, const memory::desc& wanted) {
    const memory outside(operand.layout, engine(), DNNL_MEMORY_NONE);
    Bound bound{.written = operand.written, .outside = outside, .inside = outside, .reorder = {}};
    if (wanted != operand.layout) {
      bound.inside = memory(wanted, engine(), DNNL_MEMORY_NONE);
      bound.offset = reserve(wanted.get_size());
      bound.reorder = operand.written ? dnnl::reorder(bound.inside, outside) : dnnl::reorder(outside, bound.inside);
    }
    arguments_.emplace(operand.argument, bound.inside);
    bound_.push_back(std::move(bound));
  }

  std::size_t reserve(std::size_t bytes) { return std::exchange(scratch_bytes_, scratch_bytes_ + aligned(bytes)); }

  dnnl::primitive primitive_;
  std::string implementation_;
  std::vector<Bound> bound_;
  memory scratchpad_;
  std::size_t scratchpad_offset_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::unordered_map<int, memory> arguments_;
};

enum class Operation { kForward, kBackwardInput, kBackwardFilter, kMultiply };

/// Operation, thread count (oneDNN plans the work for the threads there are) and everything else a kernel depends on.
using Key = std::vector<std::int64_t>;

struct CachedKernel {
  std::string description;
  Kernel kernel;
};

std::map<Key, CachedKernel>& cache() {
  static std::map<Key, CachedKernel> instance;
  return instance;
}

/// More shapes than any model has; a program that keeps on changing shapes must not keep on growing.
constexpr std::size_t kMaxKernels = 1024;

/// Runs the kernel for `key`, compiling it if need be. `describe` gives the text for errors.
void run(const Key& key, const std::function<std::string()>& describe, const std::function<Kernel()>& compile,
         std::initializer_list<const void*> addresses) {
  try {
    auto found = cache().find(key);
    if (found == cache().end()) {
      if (cache().size() >= kMaxKernels) cache().clear();
      found = cache().emplace(key, CachedKernel{describe(), compile()}).first;
    }
    found->second.kernel.run(addresses);
  } catch (const dnnl::error& error) {
    fail("oneDNN failed in ", describe(), ": ", error.what());
  }
}

void append(Key& key, const Shape& shape) { key.insert(key.end(), shape.extents().begin(), shape.extents().end()); }
void append(Key& key, const std::array<std::int64_t, 2>& pair) { key.insert(key.end(), pair.begin(), pair.end()); }

Key key_of(Operation operation, const Convolution& c) {
  Key key = {static_cast<std::int64_t>(operation), thread_count(), c.depthwise};
  key.reserve(32);
  for (const Shape* shape : {&c.input, &c.filter, &c.output}) append(key, *shape);
  for (const auto* pair : {&c.strides, &c.dilations, &c.pad_before, &c.pad_after}) append(key, *pair);
  return key;
}

std::string describe(std::string_view what, const Convolution& c) {
  return concat(c.depthwise ? "depthwise convolution" : "convolution", what, " of ", c.input, " with ", c.filter,
                " to ", c.output, ", strides [", c.strides[0], ",", c.strides[1], "], dilations [", c.dilations[0], ",",
                c.dilations[1], "]");
}

/// Layouts: oneDNN counts extents as n, c, h, w whatever the order in memory.
memory::desc images(const Shape& shape) {
  return {{shape[0], shape[3], shape[1], shape[2]}, kFloat, memory::format_tag::nhwc};
}

/// [out, in, kh, kw], or for depthwise [groups, 1 out each = multiplier, 1 in each, kh, kw].
memory::dims filter_extents(const Convolution& c) {
  const Shape& f = c.filter;
  return c.depthwise ? memory::dims{f[2], f[3], 1, f[0], f[1]} : memory::dims{f[3], f[2], f[0], f[1]};
}

memory::desc plain_filter(const Convolution& c) {
  const Shape& f = c.filter;
  const std::int64_t pixel = f[2] * f[3];
  return {filter_extents(c), kFloat,
          c.depthwise ? memory::dims{f[3], 1, f[3], f[1] * pixel, pixel} : memory::dims{1, f[3], f[1] * pixel, pixel}};
}

/// Filters in whatever order suits the kernel: a plain one would send oneDNN to its slow paths.
memory::desc any_filter(const Convolution& c) { return {filter_extents(c), kFloat, memory::format_tag::any}; }

memory::dims pair(const std::array<std::int64_t, 2>& values) { return {values[0], values[1]}; }
/// oneDNN counts the pixels skipped.
memory::dims skipped(const std::array<std::int64_t, 2>& dilations) { return {dilations[0] - 1, dilations[1] - 1}; }

auto describe_forward(const Convolution& c) {
  return describe_primitive<dnnl::convolution_forward>(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, images(c.input), any_filter(c),
      images(c.output), pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after));
}

memory::desc matrix(const Matrix& m) {
  return {{m.rows, m.columns}, kFloat, memory::dims{m.row_stride, m.column_stride}};
}

}  // namespace

void convolve(const Convolution& c, const float* input, const float* filter, float* output) {
  const auto compile = [&c] {
    return Kernel(
        describe_forward(c),
        {{DNNL_ARG_SRC, images(c.input)}, {DNNL_ARG_WEIGHTS, plain_filter(c)}, {DNNL_ARG_DST, images(c.output), true}});
  };
  run(key_of(Operation::kForward, c), [&c] { return describe("", c); }, compile, {input, filter, output});
}

void convolve_backward_input(const Convolution& c, const float* d_output, const float* filter, float* d_input) {
  const auto compile = [&c] {
    const auto description = describe_backward<dnnl::convolution_backward_data>(
        describe_forward(c), dnnl::algorithm::convolution_direct, images(c.input), any_filter(c), images(c.output),
        pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after));
    return Kernel(description, {{DNNL_ARG_DIFF_DST, images(c.output)},
                                {DNNL_ARG_WEIGHTS, plain_filter(c)},
                                {DNNL_ARG_DIFF_SRC, images(c.input), true}});
  };
  run(key_of(Operation::kBackwardInput, c), [&c] { return describe(" (gradient of the input)", c); }, compile,
      {d_output, filter, d_input});
}

void convolve_backward_filter(const Convolution& c, const float* input, const float* d_output, float* d_filter) {
  const auto compile = [&c] {
    const auto description = describe_backward<dnnl::convolution_backward_weights>(
        describe_forward(c), dnnl::algorithm::convolution_direct, images(c.input), any_filter(c), images(c.output),
        pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after));
    return Kernel(description, {{DNNL_ARG_SRC, images(c.input)},
                                {DNNL_ARG_DIFF_DST, images(c.output)},
                                {DNNL_ARG_DIFF_WEIGHTS, plain_filter(c), true}});
  };
  run(key_of(Operation::kBackwardFilter, c), [&c] { return describe(" (gradient of the filter)", c); }, compile,
      {input, d_output, d_filter});
}

void multiply(const Matrix& a, const Matrix& b, float* product) {
  const Matrix result = Matrix::row_major(product, a.rows, b.columns);
  const Key key = {static_cast<std::int64_t>(Operation::kMultiply),
                   thread_count(),
                   a.rows,
                   a.columns,
                   a.row_stride,
                   a.column_stride,
                   b.rows,
                   b.columns,
                   b.row_stride,
                   b.column_stride};
  const auto compile = [&] {
    return Kernel(describe_primitive<dnnl::matmul>(matrix(a), matrix(b), matrix(result)),
                  {{DNNL_ARG_SRC, matrix(a)}, {DNNL_ARG_WEIGHTS, matrix(b)}, {DNNL_ARG_DST, matrix(result), true}});
  };
  const auto describe = [&] {
    return concat("matrix product of [", a.rows, ",", a.columns, a.column_stride == 1 ? "" : "; transposed", "] and [",
                  b.rows, ",", b.columns, b.column_stride == 1 ? "" : "; transposed", "]");
  };
  run(key, describe, compile, {a.data, b.data, product});
}

std::map<std::string, std::string> compiled_kernels() {
  std::map<std::string, std::string> kernels;
  for (const auto& [key, cached] : cache()) kernels.emplace(cached.description, cached.kernel.implementation());
  return kernels;
}

}  // namespace miniqat::onednn
