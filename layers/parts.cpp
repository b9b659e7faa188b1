#include "layers/parts.h"

#include <algorithm>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "layers/kernels/passed_codes.h"
#include "layers/kernels/pointwise.h"
#include "layers/reference/parts.h"

namespace miniqat::layers {
namespace {

using Cuts = std::array<Cut, Shape::kMaxRank>;

/// How a part lies in a whole, row by row. Axes are taken together wherever numbers stay side by side.
class PartOfWhole {
 public:
  PartOfWhole(const Shape& whole, const Shape& part, const Cuts& cuts) : elements_(part.elements()) {
    for (int axis = 0; axis < whole.rank(); ++axis) {
      Axis& last = axes_[last_];
      if (whole[axis] == part[axis] && last.step == 1)
        last = {last.whole * whole[axis], last.part * whole[axis], last.start * whole[axis], 1};
      else
        axes_[++last_] = {whole[axis], part[axis], cuts[axis].start, part[axis] == 1 ? 1 : cuts[axis].step};
    }
  }

  /// Calls body(i, j, length, step) for every row of the part: element i + k of the part is element j + k * step of the
  /// whole. Over threads.
  template <class Body>
  void for_each_row(const Body& body) const {
    if (elements_ == 0) return;
    const auto [whole, length, start, step] = axes_[last_];
    parallel_for(elements_ / length, row_grain(length), [&, length = length, step = step](auto begin, auto end) {
      for (std::int64_t r = begin; r < end; ++r) body(r * length, row_start(r), length, step);
    });
  }

 private:
  /// The lengths of an axis, and the numbers of the whole that make the part.
  struct Axis {
    std::int64_t whole = 1, part = 1, start = 0, step = 1;
  };

  /// Where row r of the part begins in the whole.
  std::int64_t row_start(std::int64_t r) const {
    std::int64_t start = axes_[last_].start, stride = axes_[last_].whole;
    for (int i = last_ - 1; i > 0; --i) {
      start += (axes_[i].start + r % axes_[i].part * axes_[i].step) * stride;
      r /= axes_[i].part;
      stride *= axes_[i].whole;
    }
    // What is left of r is the number on the first axis.
    return last_ == 0 ? start : start + (axes_[0].start + r * axes_[0].step) * stride;
  }

  std::int64_t elements_;
  std::array<Axis, Shape::kMaxRank + 1> axes_;
  int last_ = 0;
};

/// From the whole to the part: numbers, or bytes that stand for them.
template <class T>
void take_part(const PartOfWhole& rows, const T* from, T* to) {
  rows.for_each_row([=](auto i, auto j, auto length, auto step) {
    if (step == 1)
      std::copy(from + j, from + j + length, to + i);
    else
      for (std::int64_t k = 0; k < length; ++k) to[i + k] = from[j + k * step];
  });
}

/// From the part to the whole, of which all else stays.
template <class T>
void put_part(const PartOfWhole& rows, const T* from, T* to) {
  rows.for_each_row([=](auto i, auto j, auto length, auto step) {
    if (step == 1)
      std::copy(from + i, from + i + length, to + j);
    else
      for (std::int64_t k = 0; k < length; ++k) to[j + k * step] = from[i + k];
  });
}

/// Into a whole of so many elements, of which all else becomes `zero`.
template <class T>
void put_part_among(T zero, const PartOfWhole& rows, const T* from, T* to, std::int64_t elements) {
  parallel_for(elements, kPointwiseGrain,
               [=](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, zero); });
  put_part(rows, from, to);
}

void take_part(const Tensor& whole, const Cuts& cuts, Tensor& part) {
  take_part(PartOfWhole(whole.shape(), part.shape(), cuts), whole.data<float>(), part.data<float>());
}

void put_part(const Tensor& part, const Cuts& cuts, Tensor& whole) {
  put_part(PartOfWhole(whole.shape(), part.shape(), cuts), part.data<float>(), whole.data<float>());
}

void put_part_among_zeros(const Tensor& part, const Cuts& cuts, Tensor& whole) {
  put_part_among(0.0f, PartOfWhole(whole.shape(), part.shape(), cuts), part.data<float>(), whole.data<float>(),
                 whole.elements());
}

/// The same of float and double, as specified.
void reference_take_part(const Tensor& whole, const Cuts& cuts, Tensor& part) {
  with_float_type(
      whole, [&]<class T>(T) { reference::slice(whole.shape(), part.shape(), cuts, whole.data<T>(), part.data<T>()); });
}

void reference_put_part_among_zeros(const Tensor& part, const Cuts& cuts, Tensor& whole) {
  with_float_type(whole, [&]<class T>(T) {
    reference::slice_d_x(whole.shape(), part.shape(), cuts, part.data<T>(), whole.data<T>());
  });
}

class SliceOp final : public OpOf<Slice>, public PassesPacked {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 1);
    require_float(inputs);
    const Shape& x = inputs[0].shape;
    const auto& [axes, starts, ends, steps] = attributes_;
    if (starts.size() != axes.size() || ends.size() != axes.size() || (!steps.empty() && steps.size() != axes.size()))
      fail("needs as many starts, ends and steps as axes; there are ", counted(axes.size(), "axis"), ", ",
           counted(starts.size(), "start"), ", ", counted(ends.size(), "end"), " and ", counted(steps.size(), "step"));
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

  PackedForm passed_form(std::span<const TensorSpec> inputs, const PackedForm& form) const override {
    return passed_on(form, infer(inputs)[0].shape.elements());
  }

  void forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    if (context.packed_inputs.empty()) return take_part(x, cuts(x), y);
    const Tensor& codes = *context.packed_inputs[0];
    take_part(PartOfWhole(x.shape(), y.shape(), cuts(x)), codes.data<std::uint8_t>(),
              context.packed->data<std::uint8_t>());
    finish_codes(context.packed_forms[0], codes, *context.packed, y);
  }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) put_part_among_zeros(*context.d_outputs[0], cuts(*d_x), *d_x);
  }

  void reference_forward(const ForwardContext& context) const override {
    reference_take_part(context.input(0), cuts(context.input(0)), context.output(0));
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) reference_put_part_among_zeros(*context.d_outputs[0], cuts(*d_x), *d_x);
  }

 private:
  Cuts cuts(const Tensor& x) const { return attributes_.cuts(x.shape().rank()); }
};

/// Its input is a part of its output.
class PadOp final : public OpOf<Pad>, public PassesPacked {
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

  PackedForm passed_form(std::span<const TensorSpec> inputs, const PackedForm& form) const override {
    return passed_on(form, infer(inputs)[0].shape.elements());
  }

  void forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    if (context.packed_inputs.empty()) return put_part_among_zeros(x, cuts(), y);
    const Tensor& codes = *context.packed_inputs[0];
    // Any code is NaN where the grid is.
    const float zero = grid_of_codes(context.packed_forms[0], codes).zero_point;
    put_part_among(static_cast<std::uint8_t>(zero == zero ? zero : 0), PartOfWhole(y.shape(), x.shape(), cuts()),
                   codes.data<std::uint8_t>(), context.packed->data<std::uint8_t>(), y.shape().elements());
    finish_codes(context.packed_forms[0], codes, *context.packed, y);
  }

  void backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) take_part(*context.d_outputs[0], cuts(), *d_x);
  }

  void reference_forward(const ForwardContext& context) const override {
    reference_put_part_among_zeros(context.input(0), cuts(), context.output(0));
  }

  void reference_backward(const BackwardContext& context) const override {
    if (Tensor* d_x = context.d_inputs[0]) reference_take_part(*context.d_outputs[0], cuts(), *d_x);
  }

 private:
  Cuts cuts() const {
    Cuts behind_zeros;
    for (std::size_t axis = 0; axis < attributes_.paddings.size(); ++axis)
      behind_zeros[axis].start = attributes_.paddings[axis][0];
    return behind_zeros;
  }
};

/// Its inputs are parts of its output, one behind the other.
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
    Cuts cuts;
    for (const Tensor* x : context.inputs) {
      put_part(*x, cuts, context.output(0));
      move_on(cuts, x->shape());
    }
  }

  void backward(const BackwardContext& context) const override {
    Cuts cuts;
    for (std::size_t k = 0; k < context.d_inputs.size(); ++k) {
      if (Tensor* d_x = context.d_inputs[k]) take_part(*context.d_outputs[0], cuts, *d_x);
      move_on(cuts, context.forward->input(static_cast<int>(k)).shape());
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
  /// To where the next input begins.
  void move_on(Cuts& cuts, const Shape& x) const {
    const std::int64_t axis = attributes_.axis < 0 ? attributes_.axis + x.rank() : attributes_.axis;
    cuts[static_cast<std::size_t>(axis)].start += x[static_cast<int>(axis)];
  }

  static std::vector<Shape> input_shapes(const ForwardContext& context) {
    std::vector<Shape> shapes;
    for (const Tensor* input : context.inputs) shapes.push_back(input->shape());
    return shapes;
  }
};

}  // namespace

std::array<Cut, Shape::kMaxRank> SliceAttributes::cuts(int rank) const {
  Cuts result;
  for (std::size_t i = 0; i < axes.size(); ++i)
    result[static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = {.start = starts[i],
                                                                                .step = steps.empty() ? 1 : steps[i]};
  return result;
}

std::shared_ptr<Op> Slice::make(const Attributes& attributes) { return std::make_shared<SliceOp>(attributes); }

std::shared_ptr<Op> Pad::make(const Attributes& attributes) { return std::make_shared<PadOp>(attributes); }

std::shared_ptr<Op> Concat::make(const Attributes& attributes) { return std::make_shared<ConcatOp>(attributes); }

}  // namespace miniqat::layers
