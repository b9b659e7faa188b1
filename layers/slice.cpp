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

/// The part of x that is cut out.
void take_part(const Tensor& x, const std::vector<Cut>& cuts, Tensor& part) {
  const float* from = x.data<float>();
  float* to = part.data<float>();
  for_each_row_of_part(merged_axes(x.shape(), part.shape(), cuts), part.elements(),
                       [=](std::int64_t i, std::int64_t j, std::int64_t length, std::int64_t step) {
                         if (step == 1)
                           std::copy(from + j, from + j + length, to + i);
                         else
                           for (std::int64_t k = 0; k < length; ++k) to[i + k] = from[j + k * step];
                       });
}

/// The part where it was cut out of x, and 0 everywhere else.
void put_part(const Tensor& part, const std::vector<Cut>& cuts, Tensor& x) {
  const float* from = part.data<float>();
  float* to = x.data<float>();
  parallel_for(x.elements(), kPointwiseGrain,
               [=](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, 0.0f); });
  for_each_row_of_part(merged_axes(x.shape(), part.shape(), cuts), part.elements(),
                       [=](std::int64_t i, std::int64_t j, std::int64_t length, std::int64_t step) {
                         if (step == 1)
                           std::copy(from + i, from + i + length, to + j);
                         else
                           for (std::int64_t k = 0; k < length; ++k) to[j + k * step] = from[i + k];
                       });
}

/// The same of float and double, as specified.
void reference_take_part(const Tensor& x, const std::vector<Cut>& cuts, Tensor& part) {
  with_float_type(x, [&]<class T>(T) { reference::slice(x.shape(), part.shape(), cuts, x.data<T>(), part.data<T>()); });
}

void reference_put_part(const Tensor& part, const std::vector<Cut>& cuts, Tensor& x) {
  with_float_type(
      x, [&]<class T>(T) { reference::slice_d_x(x.shape(), part.shape(), cuts, part.data<T>(), x.data<T>()); });
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
    take_part(context.input(0), cuts(context.input(0)), context.output(0));
  }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) put_part(*context.d_outputs[0], cuts(*d_x), *d_x);
  }

  void reference_forward(const ForwardContext& context) const override {
    reference_take_part(context.input(0), cuts(context.input(0)), context.output(0));
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) reference_put_part(*context.d_outputs[0], cuts(*d_x), *d_x);
  }

 private:
  std::vector<Cut> cuts(const Tensor& x) const { return attributes_.cuts(x.shape().rank()); }
};

/// Its input is a part of its output.
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

  void forward(const ForwardContext& context) const override { put_part(context.input(0), cuts(), context.output(0)); }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) take_part(*context.d_outputs[0], cuts(), *d_x);
  }

  void reference_forward(const ForwardContext& context) const override {
    reference_put_part(context.input(0), cuts(), context.output(0));
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) reference_take_part(*context.d_outputs[0], cuts(), *d_x);
  }

 private:
  std::vector<Cut> cuts() const {
    std::vector<Cut> behind_zeros;
    for (const auto& [before, after] : attributes_.paddings) behind_zeros.push_back({.start = before});
    return behind_zeros;
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

void PadAttributes::visit(AttributeVisitor& visitor) { visitor.field("paddings", paddings); }

std::shared_ptr<Op> Pad::make(const Attributes& attributes) { return std::make_shared<PadOp>(attributes); }

Output pad(Graph& graph, const std::string& name, Output x, const PadAttributes& attributes) {
  return graph.add(name, Pad::make(attributes), {x}).output();
}

}  // namespace miniqat::layers
