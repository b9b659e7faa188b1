#include "layers/pad.h"

#include <algorithm>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/pad.h"

namespace miniqat::layers {
namespace {

/// The beginning in y of row r of x, along its last axis.
std::int64_t row_start(std::int64_t r, const Shape& x, const Shape& y,
                       std::span<const std::array<std::int64_t, 2>> paddings) {
  if (x.rank() == 0) return 0;
  const int last = x.rank() - 1;
  std::int64_t start = paddings[last][0];
  std::int64_t stride = y[last];
  for (int axis = last - 1; axis >= 0; --axis) {
    start += (r % x[axis] + paddings[axis][0]) * stride;
    stride *= y[axis];
    r /= x[axis];
  }
  return start;
}

/// Calls body(i, j, length) for every row of x along its last axis: length elements that start at element i of x and at
/// element j of the padded y. Over threads.
template <class Body>
void for_each_row(const Shape& x, const Shape& y, std::span<const std::array<std::int64_t, 2>> paddings,
                  const Body& body) {
  const std::int64_t length = x.channels();
  if (length == 0) return;
  parallel_for(x.elements() / length, row_grain(length), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) body(r * length, row_start(r, x, y, paddings), length);
  });
}

class PadOp final : public OpOf<Pad> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    const Shape& x = inputs[0].shape;
    if (static_cast<int>(attributes_.paddings.size()) != x.rank())
      fail("needs one [before, after] for each of the ", x.rank(), " axes, has ", attributes_.paddings.size(), "; x ",
           x);
    std::vector<std::int64_t> extents = x.to_vector();
    for (int axis = 0; axis < x.rank(); ++axis)
      for (const std::int64_t padding : attributes_.paddings[axis]) {
        if (padding < 0 || padding > Shape::kMaxElements)
          fail("padding ", padding, " of axis ", axis, " is outside [0, ", Shape::kMaxElements, "]; x ", x);
        extents[axis] += padding;
      }
    return {{Shape(extents), DType::kFloat32}};
  }

  void forward(const ForwardContext& context) const override {
    const Tensor& input = context.input(0);
    Tensor& output = context.output(0);
    const float* x = input.data<float>();
    float* y = output.data<float>();
    parallel_for(output.elements(), kPointwiseGrain,
                 [=](std::int64_t begin, std::int64_t end) { std::fill(y + begin, y + end, 0.0f); });
    for_each_row(input.shape(), output.shape(), attributes_.paddings,
                 [=](std::int64_t i, std::int64_t j, std::int64_t length) { std::copy(x + i, x + i + length, y + j); });
  }

  void backward(const BackwardContext& context) const override {
    if (!context.d_inputs[0]) return;
    const float* d_y = context.d_outputs[0]->data<float>();
    float* d_x = context.d_inputs[0]->data<float>();
    for_each_row(
        context.d_inputs[0]->shape(), context.d_outputs[0]->shape(), attributes_.paddings,
        [=](std::int64_t i, std::int64_t j, std::int64_t length) { std::copy(d_y + j, d_y + j + length, d_x + i); });
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    with_float_type(x, [&]<class T>(T) {
      reference::pad<T>(x.shape(), y.shape(), attributes_.paddings, x.data<T>(), y.data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& d_y = *context.d_outputs[0];
    if (Tensor* d_x = context.d_inputs[0])
      with_float_type(d_y, [&]<class T>(T) {
        reference::pad_d_x<T>(d_x->shape(), d_y.shape(), attributes_.paddings, d_y.data<T>(), d_x->data<T>());
      });
  }
};

}  // namespace

void PadAttributes::visit(AttributeVisitor& visitor) { visitor.field("paddings", paddings); }

std::shared_ptr<Op> Pad::make(const Attributes& attributes) { return std::make_shared<PadOp>(attributes); }

Output pad(Graph& graph, const std::string& name, Output x, const PadAttributes& attributes) {
  return graph.add(name, Pad::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
