#pragma once

#include <oneapi/dnnl/dnnl_version.h>

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

/// The bare program that training steps are measured against: oneDNN's primitives on memory allocated once, NHWC
/// activations, weights in whatever layout oneDNN wants and kept in it from step to step, fused quantization, and
/// nothing around it. It shares no code with our engine, so that it stays where it is when the engine changes.
namespace miniqat::limit {

const dnnl::engine& engine();
dnnl::stream& stream();

// Version 3 dropped the operation descriptors of version 2.
#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
template <class Primitive, class... Arguments>
auto describe(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(engine(), arguments..., attributes);
}
template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const Hint& hint, const Arguments&... arguments) {
  return typename Primitive::primitive_desc(engine(), arguments..., hint);
}
#else
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
template <class Primitive, class... Arguments>
auto describe(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Primitive::primitive_desc({arguments...}, attributes, engine());
}
template <class Primitive, class Hint, class... Arguments>
auto describe_backward(const Hint& hint, const Arguments&... arguments) {
  return typename Primitive::primitive_desc({arguments...}, engine(), hint);
}
#endif

/// A relu done by the primitive before it.
dnnl::primitive_attr with_relu();

/// Zeroed floats, 64-byte aligned; room is rounded up to whole blocks (kBlock), so that loops need no tails: what lies
/// beyond the tensor stays 0 in all of them.
class Buffer {
 public:
  static constexpr std::int64_t kBlock = 512;

  Buffer() = default;
  explicit Buffer(std::int64_t floats);
  explicit Buffer(const dnnl::memory::desc& layout);

  float* data() const { return memory_.get(); }
  /// Whole blocks.
  std::int64_t blocks() const { return blocks_; }
  /// Looked at in a layout; valid as long as this.
  dnnl::memory as(const dnnl::memory::desc& layout) const { return {layout, engine(), memory_.get()}; }

 private:
  struct Release {
    void operator()(float* memory) const;
  };
  std::unique_ptr<float, Release> memory_;
  std::int64_t blocks_ = 0;
};

}  // namespace miniqat::limit
