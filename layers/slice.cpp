#include "layers/slice.h"

#include <algorithm>

#include "core/graph/node_check.h"
#include "core/graph/op.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/slice.h"

namespace miniqat::layers {
namespace {

/// One axis: the lengths of the whole and of the part, and the numbers that make the part.
struct CutAxis {
  std::int64_t x, y, start, step;
};

/// The axes, an uncut one taken together with the one before it wherever numbers then stay side by side. Never empty.
std::vector<CutAxis> merged_axes(const Shape& x, const Shape& y, const std::vector<Cut>& cuts) {
  std::vector<CutAxis> merged = {{1, 1, 0, 1}};
  for (int axis = 0; axis < x.rank(); ++axis) {
    const Cut& cut = cuts[static_cast<std::size_t>(axis)];
    CutAxis& last = merged.back();
    if (x[axis] == y[axis] && last.step == 1)
      last = {last.x * x[axis], last.y * x[axis], last.start * x[axis], 1};
    else
      merged.push_back({x[axis], y[axis], cut.start, y[axis] == 1 ? 1 : cut.step});
  }
  return merged;
}

/// Where row r of the part begins in x.
std::int64_t row_start(std::int64_t r, const std::vector<CutAxis>& axes) {
  std::int64_t start = axes.back().start, stride = axes.back().x;
  for (std::size_t i = axes.size() - 1; i-- > 0;) {
    start += (axes[i].start + r % axes[i].y * axes[i].step) * stride;
    r /= axes[i].y;
    stride *= axes[i].x;
  }
  return start;
}

/// Calls body(i, j, length, step) for every row of the part: element i + k of the part is element j + k * step of x.
/// Over threads.
template <class Body>
void for_each_row_of_part(const std::vector<CutAxis>& axes, std::int64_t elements, const Body& body) {
  const std::int64_t length = axes.back().y, step = axes.back().step;
  if (elements == 0) return;
  parallel_for(elements / length, row_grain(length), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) body(r * length, row_start(r, axes), length, step);
  });
}

class SliceOp final : public OpOf<Slice> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    const Shape& x = inputs[0].shape;
    const auto& [axes, starts, ends, steps] = attributes_;
    if (starts.size() != axes.size() || ends.size() != axes.size() || (!steps.empty() && steps.size() != axes.size()))
      fail("needs as many starts, ends and steps as axes; there are ", axes.size(), " axes, ", starts.size(),
           " starts, ", ends.size(), " ends and ", steps.size(), " steps");
    std::vector<std::int64_t> extents = x.to_vector();
    std::vector<bool> cut(extents.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::int64_t rank = x.rank(), axis = axes[i] < 0 && axes[i] >= -rank ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank) fail("axis ", axes[i], " does not exist in x ", x);
      const auto place = static_cast<std::size_t>(axis);
      if (cut[place]) fail("cuts axis ", axis, " twice; x ", x);
      cut[place] = true;
      const std::int64_t step = steps.empty() ? 1 : steps[i];
      if (starts[i] < 0 || starts[i] >= ends[i] || ends[i] > extents[place])
        fail("keeps ", starts[i], " to ", ends[i], " of axis ", axis, "; x ", x);
      if (step < 1) fail("has a step of ", step, ", which is not 1 or more");
      extents[place] = (ends[i] - starts[i] - 1) / step + 1;
    }
    return {{Shape(extents), DType::kFloat32}};
  }

  void forward(const ForwardContext& context) const override {
    const float* x = context.input(0).data<float>();
    Tensor& output = context.output(0);
    float* y = output.data<float>();
    for_each_row_of_part(merged(context.input(0).shape(), output.shape()), output.elements(),
                         [=](std::int64_t i, std::int64_t j, std::int64_t length, std::int64_t step) {
                           if (step == 1)
                             std::copy(x + j, x + j + length, y + i);
                           else
                             for (std::int64_t k = 0; k < length; ++k) y[i + k] = x[j + k * step];
                         });
  }

  void backward(const BackwardContext& context) const override {
    if (!context.d_inputs[0]) return;
    const Tensor& d_output = *context.d_outputs[0];
    const float* d_y = d_output.data<float>();
    Tensor& d_input = *context.d_inputs[0];
    float* d_x = d_input.data<float>();
    parallel_for(d_input.elements(), kPointwiseGrain,
                 [=](std::int64_t begin, std::int64_t end) { std::fill(d_x + begin, d_x + end, 0.0f); });
    for_each_row_of_part(merged(d_input.shape(), d_output.shape()), d_output.elements(),
                         [=](std::int64_t i, std::int64_t j, std::int64_t length, std::int64_t step) {
                           if (step == 1)
                             std::copy(d_y + i, d_y + i + length, d_x + j);
                           else
                             for (std::int64_t k = 0; k < length; ++k) d_x[j + k * step] = d_y[i + k];
                         });
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    with_float_type(x, [&]<class T>(T) {
      reference::slice(x.shape(), y.shape(), attributes_.cuts(x.shape().rank()), x.data<T>(), y.data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor& d_y = *context.d_outputs[0];
    if (Tensor* d_x = context.d_inputs[0])
      with_float_type(d_y, [&]<class T>(T) {
        reference::slice_d_x(d_x->shape(), d_y.shape(), attributes_.cuts(d_x->shape().rank()), d_y.data<T>(),
                             d_x->data<T>());
      });
  }

 private:
  std::vector<CutAxis> merged(const Shape& x, const Shape& y) const {
    return merged_axes(x, y, attributes_.cuts(x.rank()));
  }
};

}  // namespace

void SliceAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("axes", axes);
  visitor.field("starts", starts);
  visitor.field("ends", ends);
  visitor.field("steps", steps);
}

std::vector<Cut> SliceAttributes::cuts(int rank) const {
  std::vector<Cut> result(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < axes.size(); ++i)
    result[static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = {.start = starts[i],
                                                                                .step = steps.empty() ? 1 : steps[i]};
  return result;
}

std::shared_ptr<Op> Slice::make(const Attributes& attributes) { return std::make_shared<SliceOp>(attributes); }

Output slice(Graph& graph, const std::string& name, Output x, const SliceAttributes& attributes) {
  return graph.add(name, Slice::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
