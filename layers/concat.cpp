#include "layers/concat.h"

#include <algorithm>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/concat.h"

namespace miniqat::layers {
namespace {

/// One input of a concatenation. Seen from the joined axis the output is [outer, y_extent, inner]; the part covers
/// [offset, offset + x_extent) of the middle axis.
struct ConcatPart {
  std::int64_t outer;
  std::int64_t x_extent;
  std::int64_t y_extent;
  std::int64_t offset;
  std::int64_t inner;
};

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t result = 1;
  for (const std::int64_t extent : extents) result *= extent;
  return result;
}

/// Walks over the inputs of a concatenation: next() describes one after the other.
class Parts {
 public:
  Parts(const Shape& y, std::int64_t axis) : axis_(axis < 0 ? axis + y.rank() : axis) {
    part_.outer = product(y.extents().first(axis_));
    part_.y_extent = y[static_cast<int>(axis_)];
    part_.inner = product(y.extents().subspan(axis_ + 1));
  }

  ConcatPart next(const Shape& x) {
    part_.offset += part_.x_extent;
    part_.x_extent = x[static_cast<int>(axis_)];
    return part_;
  }

 private:
  std::int64_t axis_;
  ConcatPart part_{};
};

/// Calls body(i, j, length) for the runs of neighbouring elements that part and output have in common, over threads.
template <class Body>
void for_each_run(const ConcatPart& part, const Body& body) {
  const std::int64_t length = part.x_extent * part.inner;
  parallel_for(part.outer, row_grain(length), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) body(o * length, (o * part.y_extent + part.offset) * part.inner, length);
  });
}

class ConcatOp final : public OpOf<Concat> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    if (inputs.empty()) fail("takes at least one input, none is given");
    require_float(inputs);
    const Shape& first = inputs[0].shape;
    const std::int64_t rank = first.rank();
    if (attributes_.axis < -rank || attributes_.axis >= rank)
      fail("axis ", attributes_.axis, " does not exist in input 0 ", first);
    const std::int64_t axis = attributes_.axis < 0 ? attributes_.axis + rank : attributes_.axis;
    std::vector<std::int64_t> extents = first.to_vector();
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Shape& other = inputs[i].shape;
      bool fits = other.rank() == rank;
      for (int k = 0; fits && k < rank; ++k) fits = k == axis || other[k] == first[k];
      if (!fits) fail("inputs must agree in all axes but ", axis, "; input 0 ", first, ", input ", i, " ", other);
      extents[axis] += other[static_cast<int>(axis)];
    }
    return {{Shape(extents), DType::kFloat32}};
  }

  void forward(const ForwardContext& context) const override {
    Parts parts(context.output(0).shape(), attributes_.axis);
    float* y = context.output(0).data<float>();
    for (const Tensor* input : context.inputs) {
      const float* x = input->data<float>();
      for_each_run(parts.next(input->shape()), [=](std::int64_t i, std::int64_t j, std::int64_t length) {
        std::copy(x + i, x + i + length, y + j);
      });
    }
  }

  void backward(const BackwardContext& context) const override {
    Parts parts(context.d_outputs[0]->shape(), attributes_.axis);
    const float* d_y = context.d_outputs[0]->data<float>();
    for (std::size_t k = 0; k < context.d_inputs.size(); ++k) {
      const ConcatPart part = parts.next(context.forward->input(static_cast<int>(k)).shape());
      if (!context.d_inputs[k]) continue;
      float* d_x = context.d_inputs[k]->data<float>();
      for_each_run(part, [=](std::int64_t i, std::int64_t j, std::int64_t length) {
        std::copy(d_y + j, d_y + j + length, d_x + i);
      });
    }
  }

  void reference_forward(const ForwardContext& context) const override {
    Tensor& y = context.output(0);
    with_float_type(y, [&]<class T>(T) {
      std::vector<const T*> x;
      for (const Tensor* input : context.inputs) x.push_back(input->data<T>());
      reference::concat<T>(input_shapes(context), y.shape(), attributes_.axis, x, y.data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& d_y = *context.d_outputs[0];
    with_float_type(d_y, [&]<class T>(T) {
      std::vector<T*> d_x;
      for (Tensor* d_input : context.d_inputs) d_x.push_back(d_input ? d_input->data<T>() : nullptr);
      reference::concat_d_x<T>(input_shapes(*context.forward), d_y.shape(), attributes_.axis, d_y.data<T>(), d_x);
    });
  }

 private:
  static std::vector<Shape> input_shapes(const ForwardContext& context) {
    std::vector<Shape> shapes;
    for (const Tensor* input : context.inputs) shapes.push_back(input->shape());
    return shapes;
  }
};

}  // namespace

void ConcatAttributes::visit(AttributeVisitor& visitor) { visitor.field("axis", axis); }

std::shared_ptr<Op> Concat::make(const Attributes& attributes) { return std::make_shared<ConcatOp>(attributes); }

Output concat(Graph& graph, const std::string& name, std::vector<Output> inputs, const ConcatAttributes& attributes) {
  return graph.add(name, Concat::make(attributes), std::move(inputs)).output();
}

}  // namespace miniqat::layers
