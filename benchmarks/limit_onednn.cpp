#include "benchmarks/limit_onednn.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace miniqat::limit {
namespace {

constexpr std::size_t kAlignment = 64, kLargePage = std::size_t{1} << 21;

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::stream& stream() {
  static dnnl::stream instance(engine());
  return instance;
}

dnnl::primitive_attr with_relu() {
  dnnl::post_ops operations;
#if DNNL_VERSION_MAJOR >= 3
  operations.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
  operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(operations);
  return attributes;
}

Buffer::Buffer(std::int64_t floats) : blocks_((floats + kBlock - 1) / kBlock) {
  const auto bytes = static_cast<std::size_t>(blocks_ * kBlock) * sizeof(float);
  void* memory = std::aligned_alloc(bytes < kLargePage ? kAlignment : kLargePage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  // Refused where the system has no pages of this size; any pages do.
  if (bytes >= kLargePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  memory_.reset(static_cast<float*>(memory));
  std::fill_n(memory_.get(), blocks_ * kBlock, 0.0f);
}

Buffer::Buffer(const dnnl::memory::desc& layout)
    : Buffer(static_cast<std::int64_t>((layout.get_size() + sizeof(float) - 1) / sizeof(float))) {}

void Buffer::Release::operator()(float* memory) const { std::free(memory); }

}  // namespace miniqat::limit
