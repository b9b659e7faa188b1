#include "layers/pool.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/chain/chain_fusion.h"
#include "layers/kernels/passed_codes.h"
#include "layers/reference/pool.h"

namespace miniqat::layers {

Window2d window_of(const Shape& images, const PoolAttributes& attributes) {
  const bool strides_left_out = attributes.strides == std::array<std::int64_t, 2>{0, 0};
  return slide(images, {.window = attributes.window,
                        .strides = strides_left_out ? attributes.window : attributes.strides,
                        .padding = attributes.padding,
                        .pads = attributes.pads});
}

namespace {

std::vector<TensorSpec> infer_pool(std::span<const TensorSpec> inputs, const PoolAttributes& attributes) {
  require_inputs(inputs, 1);
  require_float(inputs);
  require_rank(inputs, 0, 4, "input");
  require_elements(inputs);
  const Shape& x = inputs[0].shape;
  const auto [rows, columns] = window_of(x, attributes);
  return {{Shape{x[0], rows.output, columns.output, x[3]}}};
}

struct Interval {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
};

/// The taps through which output position o sees the image and not its padding; never empty. Pools have no dilation.
Interval taps_of(const WindowAxis& axis, std::int64_t o) {
  const std::int64_t first = axis.source(o, 0);
  return {std::max<std::int64_t>(0, -first), std::min(axis.window, axis.input - first)};
}

/// The output positions that see an input position: those o with 0 <= padded - o * stride < window.
Interval outputs_of(const WindowAxis& axis, std::int64_t position) {
  const std::int64_t padded = position + axis.pad_before;
  const std::int64_t first = padded < axis.window ? 0 : (padded - axis.window) / axis.stride + 1;
  return {first, std::min(axis.output, padded / axis.stride + 1)};
}

struct PoolGeometry {
  Window2d window;
  std::int64_t channels;
  /// outputs_of every column of the input, for backward.
  std::span<const Interval> column_outputs;
};

#define MINIQAT_LOOPS "layers/kernels/pool_loops.h"
#include "core/kernels/per_instruction_set.h"

/// Calls body(begin, end) over the rows of pixels of a batch, over threads.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const Body& body) {
  parallel_for(rows, std::max<std::int64_t>(1, kPointwiseGrain / (pixels * channels)), body);
}

/// For backward; valid until the scope ends.
PoolGeometry backward_geometry(ScratchScope& scope, const Shape& x, const PoolAttributes& attributes) {
  const Window2d window = window_of(x, attributes);
  const std::span<Interval> outputs = scope.take<Interval>(x[2]);
  for (std::int64_t column = 0; column < x[2]; ++column) outputs[column] = outputs_of(window.columns, column);
  return {window, x[3], outputs};
}

/// Which tap won is kept in a byte where the window has at most 256.
DType index_type(const PoolAttributes& attributes) {
  return attributes.window[0] * attributes.window[1] <= 256 ? DType::kUInt8 : DType::kInt32;
}

class MaxPoolOp final : public OpOf<MaxPool>, public PassesPacked, public ChainMember {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    return infer_pool(inputs, attributes_);
  }

  std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const override {
    return {{infer(inputs)[0].shape, index_type(attributes_)}};
  }

  std::optional<ChainRole> chain_role() const override { return chain_role::MaxPooling{attributes_}; }

  PackedForm passed_form(std::span<const TensorSpec> inputs, const PackedForm& form) const override {
    return passed_on(form, infer(inputs)[0].shape.elements());
  }

  void forward(const ForwardContext& context) const override {
    if (!context.packed_inputs.empty()) return packed_forward(context);
    take_largest_of(context, context.input(0).data<float>(), context.output(0).data<float>(),
                    MINIQAT_PICK(max_rows_bytes), MINIQAT_PICK(max_rows_words));
  }

  void backward(const BackwardContext& context) const override {
    Tensor* d_x = context.d_inputs[0];
    if (d_x == nullptr) return;
    const Shape& shape = d_x->shape();
    ScratchScope scope;
    const PoolGeometry geometry = backward_geometry(scope, shape, attributes_);
    const float* from = context.d_outputs[0]->data<float>();
    float* to = d_x->data<float>();
    const Tensor& saved = *context.forward->saved[0];
    const auto run = [&](auto loop, const auto* winners) {
      for_rows(shape[0] * shape[1], shape[2], shape[3],
               [&](std::int64_t begin, std::int64_t end) { loop(geometry, winners, from, to, begin, end); });
    };
    if (saved.dtype() == DType::kUInt8)
      run(MINIQAT_PICK(max_backward_rows_bytes), saved.data<std::uint8_t>());
    else
      run(MINIQAT_PICK(max_backward_rows_words), saved.data<std::int32_t>());
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    with_float_type(x, [&]<class T>(T) {
      std::vector<std::int64_t> source;
      reference::max_pool(window_of(x.shape(), attributes_), x.shape(), y.shape(), x.data<T>(), y.data<T>(), source);
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    Tensor* d_x = context.d_inputs[0];
    if (d_x == nullptr) return;
    const Tensor& x = context.forward->input(0);
    const Tensor& d_y = *context.d_outputs[0];
    with_float_type(x, [&]<class T>(T) {
      std::vector<std::int64_t> source;
      std::vector<T> y(static_cast<std::size_t>(d_y.elements()));
      reference::max_pool(window_of(x.shape(), attributes_), x.shape(), d_y.shape(), x.data<T>(), y.data(), source);
      reference::max_pool_backward(x.shape(), source, d_y.data<T>(), d_x->data<T>());
    });
  }

 private:
  /// Runs one of the two loops: that for winners in bytes, or in words.
  template <class Number>
  void take_largest_of(const ForwardContext& context, const Number* x, Number* y, auto bytes, auto words) const {
    const Shape& shape = context.input(0).shape();
    const PoolGeometry geometry = {window_of(shape, attributes_), shape[3], {}};
    const WindowAxis& rows = geometry.window.rows;
    const WindowAxis& columns = geometry.window.columns;
    const auto run = [&](auto loop, auto* winners) {
      for_rows(shape[0] * rows.output, columns.output, shape[3],
               [&](std::int64_t begin, std::int64_t end) { loop(geometry, x, y, winners, begin, end); });
    };
    Tensor* saved = context.saved.empty() ? nullptr : context.saved[0];
    if (index_type(attributes_) == DType::kUInt8)
      run(bytes, saved ? saved->data<std::uint8_t>() : nullptr);
    else
      run(words, saved ? saved->data<std::int32_t>() : nullptr);
  }

  /// The largest number has the largest code, as scales are positive.
  void packed_forward(const ForwardContext& context) const {
    take_largest_of(context, context.packed_inputs[0]->data<std::uint8_t>(), context.packed->data<std::uint8_t>(),
                    MINIQAT_PICK(max_code_rows_bytes), MINIQAT_PICK(max_code_rows_words));
    finish_codes(context.packed_forms[0], *context.packed_inputs[0], *context.packed, context.output(0));
  }
};

class AvgPoolOp final : public OpOf<AvgPool> {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    return infer_pool(inputs, attributes_);
  }

  void forward(const ForwardContext& context) const override {
    const Shape& shape = context.input(0).shape();
    const PoolGeometry geometry = {window_of(shape, attributes_), shape[3], {}};
    const auto& [rows, columns] = geometry.window;
    const float* x = context.input(0).data<float>();
    float* y = context.output(0).data<float>();
    const auto loop = MINIQAT_PICK(average_rows);
    for_rows(shape[0] * rows.output, columns.output, shape[3],
             [&](std::int64_t begin, std::int64_t end) { loop(geometry, x, y, begin, end); });
  }

  void backward(const BackwardContext& context) const override {
    Tensor* d_x = context.d_inputs[0];
    if (d_x == nullptr) return;
    const Shape& shape = d_x->shape();
    ScratchScope scope;
    const PoolGeometry geometry = backward_geometry(scope, shape, attributes_);
    const float* from = context.d_outputs[0]->data<float>();
    float* to = d_x->data<float>();
    const auto loop = MINIQAT_PICK(average_backward_rows);
    for_rows(shape[0] * shape[1], shape[2], shape[3],
             [&](std::int64_t begin, std::int64_t end) { loop(geometry, from, to, begin, end); });
  }

  void reference_forward(const ForwardContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    with_float_type(x, [&]<class T>(T) {
      reference::avg_pool(window_of(x.shape(), attributes_), x.shape(), y.shape(), x.data<T>(), y.data<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    Tensor* d_x = context.d_inputs[0];
    if (d_x == nullptr) return;
    with_float_type(*d_x, [&]<class T>(T) {
      reference::avg_pool_backward(window_of(d_x->shape(), attributes_), d_x->shape(), context.d_outputs[0]->data<T>(),
                                   d_x->data<T>());
    });
  }
};

}  // namespace

std::shared_ptr<Op> MaxPool::make(const Attributes& attributes) { return std::make_shared<MaxPoolOp>(attributes); }

std::shared_ptr<Op> AvgPool::make(const Attributes& attributes) { return std::make_shared<AvgPoolOp>(attributes); }

}  // namespace miniqat::layers
