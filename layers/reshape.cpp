#include "layers/reshape.h"

#include <algorithm>
#include <cstddef>

#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"

namespace miniqat::layers {
namespace {

/// Copies byte by byte: what specifies a view, of any dtype.
void reference_copy(const Tensor& from, Tensor& to) {
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.raw());
  for (std::size_t i = 0; i < from.bytes(); ++i) target[i] = source[i];
}

/// The elements of one tensor, of any dtype, perhaps under another shape. The kind's class has the shape.
template <class Kind>
class ViewOp : public OpOf<Kind> {
 public:
  using OpOf<Kind>::OpOf;

  OpTraits traits() const final { return {.view = true}; }

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

class IdentityOp final : public ViewOp<Identity> {
 public:
  using ViewOp::ViewOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    return {inputs[0]};
  }
};

class ReshapeOp final : public ViewOp<Reshape> {
 public:
  using ViewOp::ViewOp;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    const Shape& from = inputs[0].shape;
    std::vector<std::int64_t> extents = attributes_.shape;
    const auto open = std::find(extents.begin(), extents.end(), -1);
    if (open == extents.end()) {
      const Shape to(extents);
      if (to.elements() != from.elements())
        fail("shape ", to, " has ", counted(to.elements(), "element"), ", input ", from, " has ", from.elements());
      return {{to, inputs[0].dtype}};
    }
    if (std::find(open + 1, extents.end(), -1) != extents.end()) fail("only one extent of the new shape may be -1");
    *open = 1;
    const std::int64_t others = Shape(extents).elements();
    if (others == 0 || from.elements() % others != 0)
      fail("no extent for -1 fits: the others of the new shape make ", counted(others, "element"), ", input ", from,
           " has ", from.elements());
    *open = from.elements() / others;
    return {{Shape(extents), inputs[0].dtype}};
  }
};

}  // namespace

std::shared_ptr<Op> Identity::make(const Attributes& attributes) { return std::make_shared<IdentityOp>(attributes); }

std::shared_ptr<Op> Reshape::make(const Attributes& attributes) { return std::make_shared<ReshapeOp>(attributes); }

}  // namespace miniqat::layers
