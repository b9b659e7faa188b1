#include "layers/pool.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/node_check.h"
#include "core/parallel.h"
#include "layers/reference/pool.h"

namespace miniqat::layers {
namespace {

Window2d window_of(const Shape& x, const PoolAttributes& attributes) {
  const bool strides_left_out = attributes.strides == std::array<std::int64_t, 2>{0, 0};
  return slide(x, {.window = attributes.window,
                   .strides = strides_left_out ? attributes.window : attributes.strides,
                   .padding = attributes.padding});
}

std::vector<TensorSpec> infer_pool(std::span<const TensorSpec> inputs, const PoolAttributes& attributes) {
  require_inputs(inputs, 1);
  require_float(inputs);
  require_rank(inputs, 0, 4, "input");
  require_elements(inputs);
  const Shape& x = inputs[0].shape;
  const auto [rows, columns] = window_of(x, attributes);
  return {{Shape{x[0], rows.output, columns.output, x[3]}}};
}

struct Range {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
};

/// The taps through which output position o sees the image and not its padding; never empty. Pools have no dilation.
Range taps_of(const WindowAxis& axis, std::int64_t o) {
  const std::int64_t first = axis.source(o, 0);
  return {std::max<std::int64_t>(0, -first), std::min(axis.window, axis.input - first)};
}

/// The output positions that see an input position: those o with 0 <= padded - o * stride < window.
Range outputs_of(const WindowAxis& axis, std::int64_t position) {
  const std::int64_t padded = position + axis.pad_before;
  const std::int64_t first = padded < axis.window ? 0 : (padded - axis.window) / axis.stride + 1;
  return {first, std::min(axis.output, padded / axis.stride + 1)};
}

/// How many rows of pixels make a worthwhile piece of work for a thread.
std::int64_t row_grain(std::int64_t pixels, std::int64_t channels) {
  return std::max<std::int64_t>(1, kPointwiseGrain / (pixels * channels));
}

/// Calls visit(output pixel, rows of taps, columns of taps, input pixel of tap [0, 0] - which may lie outside).
template <class Visit>
void for_each_output(const Shape& x, const Window2d& window, const Visit& visit) {
  const auto& [rows, columns] = window;
  parallel_for(x[0] * rows.output, row_grain(columns.output, x[3]), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / rows.output;
      const std::int64_t oy = row % rows.output;
      const Range ky = taps_of(rows, oy);
      for (std::int64_t ox = 0; ox < columns.output; ++ox)
        visit(row * columns.output + ox, ky, taps_of(columns, ox),
              (n * rows.input + rows.source(oy, 0)) * columns.input + columns.source(ox, 0));
    }
  });
}

/// Calls visit(input pixel, output pixel, tap, taps of that output that see the image) for every output that sees an
/// input pixel, after start(input pixel). Backward gathers in this way, so that threads never write the same pixel.
template <class Start, class Visit>
void for_each_input(const Shape& x, const Window2d& window, const Start& start, const Visit& visit) {
  const auto& [rows, columns] = window;
  parallel_for(x[0] * rows.input, row_grain(columns.input, x[3]), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / rows.input;
      const std::int64_t iy = row % rows.input;
      const Range oys = outputs_of(rows, iy);
      for (std::int64_t ix = 0; ix < columns.input; ++ix) {
        const std::int64_t pixel = row * columns.input + ix;
        const Range oxs = outputs_of(columns, ix);
        start(pixel);
        for (std::int64_t oy = oys.begin; oy < oys.end; ++oy)
          for (std::int64_t ox = oxs.begin; ox < oxs.end; ++ox)
            visit(pixel, (n * rows.output + oy) * columns.output + ox,
                  (iy - rows.source(oy, 0)) * columns.window + (ix - columns.source(ox, 0)),
                  taps_of(rows, oy).size() * taps_of(columns, ox).size());
      }
    }
  });
}

/// Which tap won is kept in a byte where the window has at most 256.
DType index_type(const PoolAttributes& attributes) {
  return attributes.window[0] * attributes.window[1] <= 256 ? DType::kUInt8 : DType::kInt32;
}

template <class Body>
void with_index_type(const Tensor& tensor, const Body& body) {
  if (tensor.dtype() == DType::kUInt8)
    body(std::uint8_t{});
  else
    body(std::int32_t{});
}

template <class Index>
void take_larger(const float* __restrict x, Index tap, std::int64_t channels, float* __restrict y,
                 Index* __restrict winner) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const bool larger = reference::exceeds(x[c], y[c]);
    y[c] = larger ? x[c] : y[c];
    winner[c] = larger ? tap : winner[c];
  }
}

void take_larger(const float* __restrict x, std::int64_t channels, float* __restrict y) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = reference::exceeds(x[c], y[c]) ? x[c] : y[c];
}

template <class Index>
void add_where(const Index* __restrict winner, Index tap, const float* __restrict d_y, std::int64_t channels,
               float* __restrict d_x) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float gradient = d_y[c];  // Read whatever the comparison says: else the loop keeps a branch.
    d_x[c] += winner[c] == tap ? gradient : 0.0f;
  }
}

void add_scaled(const float* __restrict x, float factor, std::int64_t channels, float* __restrict y) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] += factor * x[c];
}

/// Calls first(input pixel, tap) for the first tap of an output pixel and next(input pixel, tap) for the others.
template <class First, class Next>
void for_each_tap_of(const Window2d& window, Range ky, Range kx, std::int64_t corner, const First& first,
                     const Next& next) {
  for (std::int64_t y = ky.begin; y < ky.end; ++y)
    for (std::int64_t x = kx.begin; x < kx.end; ++x) {
      const std::int64_t pixel = corner + y * window.columns.input + x;
      const std::int64_t tap = y * window.columns.window + x;
      if (y == ky.begin && x == kx.begin)
        first(pixel, tap);
      else
        next(pixel, tap);
    }
}

}  // namespace

void PoolAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("window", window);
  visitor.field("strides", strides);
  visitor.choice("padding", padding, kPaddingNames);
}

std::vector<TensorSpec> MaxPool::infer(std::span<const TensorSpec> inputs) const {
  return infer_pool(inputs, attributes_);
}

std::vector<TensorSpec> MaxPool::saved(std::span<const TensorSpec> inputs) const {
  return {{infer(inputs)[0].shape, index_type(attributes_)}};
}

void MaxPool::forward(const ForwardContext& context) const {
  const Shape& shape = context.input(0).shape();
  const Window2d window = window_of(shape, attributes_);
  const std::int64_t channels = shape[3];
  const float* x = context.input(0).data<float>();
  float* y = context.output(0).data<float>();
  if (context.saved.empty()) {
    for_each_output(shape, window, [&](std::int64_t output, Range ky, Range kx, std::int64_t corner) {
      float* to = y + output * channels;
      for_each_tap_of(
          window, ky, kx, corner,
          [&](std::int64_t pixel, std::int64_t) { std::copy_n(x + pixel * channels, channels, to); },
          [&](std::int64_t pixel, std::int64_t) { take_larger(x + pixel * channels, channels, to); });
    });
    return;
  }
  with_index_type(*context.saved[0], [&]<class Index>(Index) {
    Index* winners = context.saved[0]->data<Index>();
    for_each_output(shape, window, [&](std::int64_t output, Range ky, Range kx, std::int64_t corner) {
      float* to = y + output * channels;
      Index* winner = winners + output * channels;
      for_each_tap_of(
          window, ky, kx, corner,
          [&](std::int64_t pixel, std::int64_t tap) {
            std::copy_n(x + pixel * channels, channels, to);
            std::fill_n(winner, channels, static_cast<Index>(tap));
          },
          [&](std::int64_t pixel, std::int64_t tap) {
            take_larger(x + pixel * channels, static_cast<Index>(tap), channels, to, winner);
          });
    });
  });
}

void MaxPool::backward(const BackwardContext& context) const {
  const Tensor* d_x = context.d_inputs[0];
  if (d_x == nullptr) return;
  const Window2d window = window_of(d_x->shape(), attributes_);
  const std::int64_t channels = d_x->shape()[3];
  const float* from = context.d_outputs[0]->data<float>();
  float* to = d_x->data<float>();
  const Tensor& saved = *context.forward->saved[0];
  with_index_type(saved, [&]<class Index>(Index) {
    const Index* winners = saved.data<Index>();
    for_each_input(
        d_x->shape(), window, [&](std::int64_t input) { std::fill_n(to + input * channels, channels, 0.0f); },
        [&](std::int64_t input, std::int64_t output, std::int64_t tap, std::int64_t) {
          add_where(winners + output * channels, static_cast<Index>(tap), from + output * channels, channels,
                    to + input * channels);
        });
  });
}

void MaxPool::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  with_float_type(x, [&]<class T>(T) {
    std::vector<std::int64_t> source;
    reference::max_pool(window_of(x.shape(), attributes_), x.shape(), y.shape(), x.data<T>(), y.data<T>(), source);
  });
}

void MaxPool::reference_backward(const BackwardContext& context) const {
  const Tensor* d_x = context.d_inputs[0];
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

std::vector<TensorSpec> AvgPool::infer(std::span<const TensorSpec> inputs) const {
  return infer_pool(inputs, attributes_);
}

void AvgPool::forward(const ForwardContext& context) const {
  const Shape& shape = context.input(0).shape();
  const Window2d window = window_of(shape, attributes_);
  const std::int64_t channels = shape[3];
  const float* x = context.input(0).data<float>();
  float* y = context.output(0).data<float>();
  for_each_output(shape, window, [&](std::int64_t output, Range ky, Range kx, std::int64_t corner) {
    const float share = 1.0f / static_cast<float>(ky.size() * kx.size());
    float* to = y + output * channels;
    const auto add = [&](std::int64_t pixel, std::int64_t) { add_scaled(x + pixel * channels, share, channels, to); };
    std::fill_n(to, channels, 0.0f);
    for_each_tap_of(window, ky, kx, corner, add, add);
  });
}

void AvgPool::backward(const BackwardContext& context) const {
  const Tensor* d_x = context.d_inputs[0];
  if (d_x == nullptr) return;
  const Window2d window = window_of(d_x->shape(), attributes_);
  const std::int64_t channels = d_x->shape()[3];
  const float* from = context.d_outputs[0]->data<float>();
  float* to = d_x->data<float>();
  for_each_input(
      d_x->shape(), window, [&](std::int64_t input) { std::fill_n(to + input * channels, channels, 0.0f); },
      [&](std::int64_t input, std::int64_t output, std::int64_t, std::int64_t taps) {
        add_scaled(from + output * channels, 1.0f / static_cast<float>(taps), channels, to + input * channels);
      });
}

void AvgPool::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  with_float_type(x, [&]<class T>(T) {
    reference::avg_pool(window_of(x.shape(), attributes_), x.shape(), y.shape(), x.data<T>(), y.data<T>());
  });
}

void AvgPool::reference_backward(const BackwardContext& context) const {
  const Tensor* d_x = context.d_inputs[0];
  if (d_x == nullptr) return;
  with_float_type(*d_x, [&]<class T>(T) {
    reference::avg_pool_backward(window_of(d_x->shape(), attributes_), d_x->shape(), context.d_outputs[0]->data<T>(),
                                 d_x->data<T>());
  });
}

Output max_pool(Graph& graph, const std::string& name, Output x, const PoolAttributes& attributes) {
  return graph.add(name, std::make_unique<MaxPool>(attributes), {x}).output();
}

Output avg_pool(Graph& graph, const std::string& name, Output x, const PoolAttributes& attributes) {
  return graph.add(name, std::make_unique<AvgPool>(attributes), {x}).output();
}

}  // namespace miniqat::layers
