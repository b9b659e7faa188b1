#include "benchmarks/limit_onednn.h"

#include <algorithm>
#include <new>

namespace miniqat::limit {
namespace {

constexpr std::align_val_t kAlignment{64};

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
  const std::int64_t room = blocks_ * kBlock;
  memory_.reset(static_cast<float*>(operator new(static_cast<std::size_t>(room) * sizeof(float), kAlignment)));
  std::fill_n(memory_.get(), room, 0.0f);
}

Buffer::Buffer(const dnnl::memory::desc& layout)
    : Buffer(static_cast<std::int64_t>((layout.get_size() + sizeof(float) - 1) / sizeof(float))) {}

void Buffer::Release::operator()(float* memory) const { operator delete(memory, kAlignment); }

}  // namespace miniqat::limit
