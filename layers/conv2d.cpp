#include "layers/conv2d.h"

#include <algorithm>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn.h"
#include "core/kernels/scratch.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/kernels/bfloat16_factors.h"
#include "layers/kernels/byte_gradient.h"
#include "layers/kernels/depthwise_kernels.h"
#include "layers/kernels/fast_convolution.h"
#include "layers/kernels/packed_product.h"
#include "layers/reference/conv2d.h"

namespace miniqat::layers {
namespace {

onednn::Convolution convolution_of(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes,
                                   bool depthwise) {
  const auto [rows, columns] = window_of(images, filter, attributes);
  const std::int64_t channels = depthwise ? filter[2] * filter[3] : filter[3];
  return {.input = images,
          .filter = filter,
          .output = {images[0], rows.output, columns.output, channels},
          .strides = attributes.strides,
          .dilations = attributes.dilations,
          .pad_before = {rows.pad_before, columns.pad_before},
          .pad_after = {rows.pad_after, columns.pad_after},
          .depthwise = depthwise};
}

/// oneDNN's products of bytes, with all that comes before and behind them, on two threads of an AVX2 machine: 32x16 to
/// 16 by 3x3: 2.1; 16x32 to 32: 2.5; 8x64 to 64: 2.8; 14x32 to 64 by 5x5: 2.0; 16x128 to 128 by 1x1: 1.5; 14x6 to 16 by
/// 5x5: 1.4 (beside oneDNN's floats); 28x1 to 32 by 5x5: 0.4; depthwise 16x128: 1.0, 32x32: 0.4.
/// So these are the reasons against it; "" for none.
std::string why_faster_in_float(const onednn::Convolution& c) {
  constexpr std::int64_t kLeastChannels = 6;
  if (c.depthwise) return "depthwise: bytes are no faster";
  if (c.filter[2] >= kLeastChannels) return "";
  return miniqat::concat(counted(c.filter[2], "input channel"), ": bytes are no faster");
}

/// oneDNN's products of bfloat16, roundings included, on two threads of a Zen 4 (AVX-512 BF16), forward / gradient of
/// the input / of the filter: 32x16 to 16 by 3x3: 1.4 / 1.5 / 1.0; 16x32 to 32: 1.7 / 1.9 / 1.3; 8x64 to 64: 2.0 / 1.7
/// / 1.2; 14x32 to 64 by 5x5: 2.0 / 2.0 / 1.6; 8x128 to 128 by 1x1: 1.6 / 1.7 / 1.4; 16x32 to 64: 1.4 / 1.3 / 0.8.
/// Gradients from bytes (VNNI): 32x16 to 16 by 3x3: 2.7 / 1.3; 14x32 to 64 by 5x5: 3.9 / 2.4. With few channels float32
/// is as fast, roundings included, and with AMX where 1x1 filters have few multiply-adds a number.
bool has_faster_rounded_products(const onednn::Convolution& c) {
  constexpr std::int64_t kFewChannels = 8;
  const std::int64_t in = c.filter[2], out = c.filter[3];
  const bool is_thin = c.filter[0] * c.filter[1] == 1 && in * out < 32 * (in + out);
  return !c.depthwise && std::min(in, out) > kFewChannels && !(is_thin && isa_level() == IsaLevel::kAmx);
}

/// The images with their padding, which is not 0; the convolution then has none.
const std::uint8_t* padded(onednn::Convolution& c, const std::uint8_t* images, std::uint8_t padding,
                           ScratchScope& scope) {
  const auto [n, h, w, channels] = std::array{c.input[0], c.input[1], c.input[2], c.input[3]};
  const std::int64_t rows = h + c.pad_before[0] + c.pad_after[0], columns = w + c.pad_before[1] + c.pad_after[1];
  const std::int64_t row_bytes = columns * channels;
  std::uint8_t* to = scope.take<std::uint8_t>(static_cast<std::size_t>(n * rows * row_bytes)).data();
  const std::int64_t top = c.pad_before[0], left = c.pad_before[1] * channels;
  parallel_for(n * rows, std::max<std::int64_t>(1, kPointwiseGrain / row_bytes),
               [&, h = h, w = w, channels = channels](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t y = i % rows - top;
                   std::uint8_t* row = to + i * row_bytes;
                   std::fill_n(row, row_bytes, padding);
                   if (y >= 0 && y < h)
                     std::copy_n(images + (i / rows * h + y) * w * channels, w * channels, row + left);
                 }
               });
  c.input = {n, rows, columns, channels};
  c.pad_before = c.pad_after = {0, 0};
  return to;
}

/// What Conv2D and DepthwiseConv2d share.
template <class Kind, bool kDepthwise>
class ConvolutionOp : public OpOf<Kind>, public MultipliesAndAdds, public ReadsPacked {
 public:
  using OpOf<Kind>::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const final {
    require_inputs(inputs, 2);
    require_float(inputs);
    require_rank(inputs, 0, 4, "input");
    require_rank(inputs, 1, 4, "filter");
    require_elements(inputs);
    const Shape& x = inputs[0].shape;
    const Shape& filter = inputs[1].shape;
    if (filter[2] != x[3])
      fail("filter expects ", filter[2], " input channels, input has ", x[3], "; input ", x, ", filter ", filter);
    return {{convolution_of(x, filter, attributes_, kDepthwise).output}};
  }

  OpTraits traits() const final { return {.gradient_over_input = 1, .backward_inputs = {0, 1}}; }

  std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const final {
    const Shape& filter = inputs[1].shape;
    return infer(inputs)[0].shape.elements() * filter[0] * filter[1] * (kDepthwise ? 1 : filter[2]);
  }

  std::string why_not_packed(std::span<const TensorSpec> inputs, std::span<const PackedForm> forms) const final {
    const Shape& filter = inputs[1].shape;
    std::string why = why_faster_in_float(convolution_of(inputs[0].shape, filter, attributes_, kDepthwise));
    return !why.empty() || forms.empty() ? why : why_inexact(forms, filter[0] * filter[1] * filter[2], filter[3]);
  }

  bool rounds_factors(std::span<const TensorSpec> inputs) const final {
    return has_faster_rounded_products(convolution_of(inputs[0].shape, inputs[1].shape, attributes_, kDepthwise));
  }

  bool has_packed_gradients(std::span<const TensorSpec> inputs, std::span<const PackedForm> forms,
                            FactorRounding rounding) const final {
    const auto convolution = convolution_of(inputs[0].shape, inputs[1].shape, attributes_, kDepthwise);
    return has_faster_rounded_products(convolution) &&
           (rounding != FactorRounding::kGradientsToInt8 || has_exact_byte_gradients(convolution, forms[1]));
  }

  void forward(const ForwardContext& context) const final {
    if (!context.packed_inputs.empty()) return packed_forward(context);
    const Tensor& x = context.input(0);
    const Tensor& filter = context.input(1);
    float* y = context.output(0).data<float>();
    const onednn::Convolution convolution = convolution_of(x.shape(), filter.shape(), attributes_, kDepthwise);
    if (context.rounding == FactorRounding::kAllToBfloat16)
      bfloat16_forward(convolution, x.data<float>(), filter.data<float>(), y);
    else
      fast_convolution(convolution, window_of(x.shape(), filter.shape(), attributes_), x.data<float>(),
                       filter.data<float>(), y);
  }

  void backward(const BackwardContext& context) const override {
    const ForwardContext& forward = *context.forward;
    const onednn::Convolution convolution =
        convolution_of(forward.input(0).shape(), forward.input(1).shape(), attributes_, kDepthwise);
    const bool rounds = forward.rounding != FactorRounding::kNone;
    if (forward.rounding == FactorRounding::kGradientsToInt8)
      return byte_backward(convolution, {forward.packed_forms[0], *forward.packed_inputs[0]},
                           {forward.packed_forms[1], *forward.packed_inputs[1]}, context.d_outputs[0]->data<float>(),
                           forward.random_key, forward.slice * convolution.output.elements(), context.d_inputs[0],
                           context.d_inputs[1]);
    if (rounds && !forward.packed_inputs.empty()) return packed_backward(context, convolution);
    if (rounds) return bfloat16_backward(context, convolution);
    backward_input(context);
    backward_filter(context);
  }

  void reference_forward(const ForwardContext& context) const final {
    const Tensor& x = context.input(0);
    const Tensor& filter = context.input(1);
    with_float_type(x, [&]<class T>(T) {
      reference::conv2d(reference_geometry(x, filter), x.data<T>(), filter.data<T>(), context.output(0).values<T>());
    });
  }

  void reference_backward(const BackwardContext& context) const final {
    const Tensor& x = context.forward->input(0);
    const Tensor& filter = context.forward->input(1);
    with_float_type(x, [&]<class T>(T) {
      const T* d_y = context.d_outputs[0]->data<T>();
      if (Tensor* d_x = context.d_inputs[0])
        reference::conv2d_backward_input(reference_geometry(x, filter), d_y, filter.data<T>(), d_x->values<T>());
      if (Tensor* d_filter = context.d_inputs[1])
        reference::conv2d_backward_filter(reference_geometry(x, filter), x.data<T>(), d_y, d_filter->values<T>());
    });
  }

 protected:
  using OpOf<Kind>::attributes_;

  // Each does nothing when nobody asks for its gradient.

  void backward_input(const BackwardContext& context) const {
    Tensor* d_x = context.d_inputs[0];
    if (d_x == nullptr) return;
    const Tensor& filter = context.forward->input(1);
    const float* d_y = context.d_outputs[0]->data<float>();
    fast_convolution_backward_input(convolution_of(d_x->shape(), filter.shape(), attributes_, kDepthwise),
                                    window_of(d_x->shape(), filter.shape(), attributes_), d_y, filter.data<float>(),
                                    d_x->data<float>());
  }

  void backward_filter(const BackwardContext& context) const {
    Tensor* d_filter = context.d_inputs[1];
    if (d_filter == nullptr) return;
    const Tensor& x = context.forward->input(0);
    const float* d_y = context.d_outputs[0]->data<float>();
    fast_convolution_backward_filter(convolution_of(x.shape(), d_filter->shape(), attributes_, kDepthwise),
                                     window_of(x.shape(), d_filter->shape(), attributes_), x.data<float>(), d_y,
                                     d_filter->data<float>());
  }

 private:
  void packed_forward(const ForwardContext& context) const {
    onednn::Convolution convolution =
        convolution_of(context.input(0).shape(), context.input(1).shape(), attributes_, kDepthwise);
    Tensor& y = context.output(0);
    ScratchScope scope;
    PackedProduct product({context.packed_forms[0], *context.packed_inputs[0]},
                          {context.packed_forms[1], *context.packed_inputs[1]}, convolution.output[3], scope);
    const std::uint8_t* x = product.x();
    if ((product.zero_point() != 0 || product.needs_sums_of_x()) && has_padding(convolution))
      x = padded(convolution, x, product.zero_point(), scope);
    onednn::convolve(convolution, x, product.filter(), static_cast<std::int32_t*>(y.raw()));
    product.finish(
        y.data<float>(), y.elements(),
        product.needs_sums_of_x() ? sums_of_windows(convolution, x, scope) : std::span<const std::int32_t>());
  }

  static void bfloat16_forward(const onednn::Convolution& convolution, const float* x, const float* filter, float* y) {
    ScratchScope scope;
    onednn::convolve(convolution, rounded_to_bfloat16(x, convolution.input.elements(), scope),
                     rounded_to_bfloat16(filter, convolution.filter.elements(), scope), y);
  }

  static void bfloat16_backward(const BackwardContext& context, const onednn::Convolution& convolution) {
    ScratchScope scope;
    const auto rounded = [&](const Tensor& tensor) {
      return rounded_to_bfloat16(tensor.data<float>(), tensor.elements(), scope);
    };
    const Bfloat16* d_y = rounded(*context.d_outputs[0]);
    if (Tensor* d_x = context.d_inputs[0])
      onednn::convolve_backward_input(convolution, d_y, rounded(context.forward->input(1)), d_x->data<float>());
    if (Tensor* d_filter = context.d_inputs[1])
      onednn::convolve_backward_filter(convolution, rounded(context.forward->input(0)), d_y, d_filter->data<float>());
  }

  static void packed_backward(const BackwardContext& context, const onednn::Convolution& convolution) {
    const ForwardContext& forward = *context.forward;
    const Tensor& d_y = *context.d_outputs[0];
    ScratchScope scope;
    const PackedGradientFactors factors({forward.packed_forms[0], *forward.packed_inputs[0]},
                                        {forward.packed_forms[1], *forward.packed_inputs[1]}, d_y.data<float>(),
                                        d_y.elements(), convolution.output[3], scope);
    if (Tensor* d_x = context.d_inputs[0])
      onednn::convolve_backward_input(convolution, factors.d_output(), factors.filter(), d_x->data<float>());
    Tensor* d_filter = context.d_inputs[1];
    if (d_filter == nullptr) return;
    onednn::convolve_backward_filter(convolution, factors.x(), factors.d_output(), d_filter->data<float>());
    factors.scale(d_filter->data<float>());
  }

  reference::Convolution reference_geometry(const Tensor& x, const Tensor& filter) const {
    return {window_of(x.shape(), filter.shape(), attributes_), x.shape(), filter.shape(), kDepthwise};
  }
};

// Our kernels were measured in turns with oneDNN's (whose grouped convolutions also take several filters a channel).
// Below AVX-512 oneDNN's win. With AVX-512 they win for most shapes, and lose (time of oneDNN's over ours)
// - in the gradient of the input with few channels: 1.15 to 1.35 at 16 to 64, 1.0 at 128, 0.9 at 256;
// - in the same gradient if it is strided and too large for the caches: 1.15 to 1.4 from 4 MiB on, 0.75 to 0.9 below;
// - in the gradient of the filter of tiny images: 20 (from 3x3 pixels on ours would take twice as long).

bool has_faster_input_gradient(const Shape& images, const Shape& filter, const DepthwiseConv2dAttributes& attributes) {
  constexpr std::int64_t kFew = 64;
  constexpr std::int64_t kLarge = std::int64_t{1} << 20;
  if (filter[3] != 1 || instruction_set() != InstructionSet::kAvx512) return false;
  const bool strided = attributes.strides != std::array<std::int64_t, 2>{1, 1};
  return strided ? images.elements() >= kLarge : filter[2] <= kFew;
}

bool has_faster_filter_gradient(const Shape& filter, const Window2d& window) {
  constexpr std::int64_t kTinyImage = 4;
  return filter[3] == 1 && window.rows.output * window.columns.output <= kTinyImage;
}

class DepthwiseConv2dOp final : public ConvolutionOp<DepthwiseConv2d, true> {
 public:
  using ConvolutionOp::ConvolutionOp;

  void backward(const BackwardContext& context) const override {
    const Tensor& x = context.forward->input(0);
    const Tensor& filter = context.forward->input(1);
    const Window2d window = window_of(x.shape(), filter.shape(), attributes_);
    const float* d_y = context.d_outputs[0]->data<float>();
    Tensor* d_x = context.d_inputs[0];
    if (d_x && has_faster_input_gradient(x.shape(), filter.shape(), attributes_))
      depthwise_backward_input(window, x.shape()[0], x.shape()[3], d_y, filter.data<float>(), d_x->data<float>());
    else
      backward_input(context);
    Tensor* d_filter = context.d_inputs[1];
    if (d_filter && has_faster_filter_gradient(filter.shape(), window))
      depthwise_backward_filter(window, x.shape()[0], x.shape()[3], x.data<float>(), d_y, d_filter->data<float>());
    else
      backward_filter(context);
  }
};

}  // namespace

Window2d window_of(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes) {
  return slide(images, {.window = {filter[0], filter[1]},
                        .strides = attributes.strides,
                        .dilations = attributes.dilations,
                        .padding = attributes.padding,
                        .pads = attributes.pads});
}

Window2d window_of(const Node& convolution) {
  const auto* depthwise = convolution.as<DepthwiseConv2d>();
  return window_of(convolution.input(0).shape(), convolution.input(1).shape(),
                   depthwise != nullptr ? *depthwise : *convolution.as<Conv2d>());
}

std::shared_ptr<Op> Conv2d::make(const Attributes& attributes) {
  return std::make_shared<ConvolutionOp<Conv2d, false>>(attributes);
}

std::shared_ptr<Op> DepthwiseConv2d::make(const Attributes& attributes) {
  return std::make_shared<DepthwiseConv2dOp>(attributes);
}

}  // namespace miniqat::layers
