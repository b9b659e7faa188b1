#pragma once

#include <cstddef>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"

namespace miniqat::layers {

/// Copies byte by byte: what specifies a view, of any dtype.
inline void reference_copy(const Tensor& from, Tensor& to) {
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.raw());
  for (std::size_t i = 0; i < from.bytes(); ++i) target[i] = source[i];
}

/// The elements of one tensor, of any dtype, perhaps under another shape. The kind's class has the shape.
template <class Kind>
class ViewOp : public OpOf<Kind> {
 public:
  using OpOf<Kind>::OpOf;

  OpTraits traits() const final {
    OpTraits traits;
    traits.view = true;
    return traits;
  }

  void forward(const ForwardContext& context) const final { copy_elements(context.input(0), context.output(0)); }

  void backward(const BackwardContext& context) const final {
    if (Tensor* d_x = context.d_inputs[0]) copy_elements(*context.d_outputs[0], *d_x);
  }

  void reference_forward(const ForwardContext& context) const final {
    reference_copy(context.input(0), context.output(0));
  }

  void reference_backward(const BackwardContext& context) const final {
    if (Tensor* d_x = context.d_inputs[0]) reference_copy(*context.d_outputs[0], *d_x);
  }
};

}  // namespace miniqat::layers
