#include "layers/conv2d.h"

#include <algorithm>

#include "core/error.h"
#include "core/node_check.h"
#include "core/onednn.h"
#include "layers/reference/conv2d.h"

namespace miniqat::layers {

void Conv2dAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("strides", strides);
  visitor.choice("padding", padding, kPaddingNames);
  visitor.field("dilations", dilations);
}

Window2d window_of(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes) {
  return slide(images, {.window = {filter[0], filter[1]},
                        .strides = attributes.strides,
                        .dilations = attributes.dilations,
                        .padding = attributes.padding});
}

namespace {

onednn::Convolution fast_convolution(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes,
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

/// A 1x1 convolution without stride is a product of matrices: pixels [n * h * w, in] times the filter [in, out].
/// oneDNN's convolutions are as fast or faster while there are many pixels; where the filter has the most elements,
/// they spend much on bringing it into their own order. Measured: products win below these many pixels for each channel
/// of the wider side, in the gradient of the filter by up to 1.7.
constexpr double kProductPixels = 0.5;
constexpr double kFilterGradientProductPixels = 2;

bool is_product(const onednn::Convolution& c, double pixels_per_channel) {
  const auto pixels = static_cast<double>(c.input[0] * c.input[1] * c.input[2]);
  return !c.depthwise && c.filter[0] * c.filter[1] == 1 && c.input[1] == c.output[1] && c.input[2] == c.output[2] &&
         pixels <= pixels_per_channel * static_cast<double>(std::max(c.filter[2], c.filter[3]));
}

/// Pixels by channels.
onednn::Matrix pixels_of(const Shape& images, const float* data) {
  return onednn::Matrix::row_major(data, images[0] * images[1] * images[2], images[3]);
}

onednn::Matrix matrix_of(const Shape& filter, const float* data) {
  return onednn::Matrix::row_major(data, filter[2], filter[3]);
}

}  // namespace

std::vector<TensorSpec> infer_convolution(std::span<const TensorSpec> inputs, const Conv2dAttributes& attributes,
                                          bool depthwise) {
  require_inputs(inputs, 2);
  require_float(inputs);
  require_rank(inputs, 0, 4, "input");
  require_rank(inputs, 1, 4, "filter");
  require_elements(inputs);
  const Shape& x = inputs[0].shape;
  const Shape& filter = inputs[1].shape;
  if (filter[2] != x[3])
    fail("filter expects ", filter[2], " input channels, input has ", x[3], "; input ", x, ", filter ", filter);
  return {{fast_convolution(x, filter, attributes, depthwise).output}};
}

void convolution_forward(const ForwardContext& context, const Conv2dAttributes& attributes, bool depthwise) {
  const Tensor& x = context.input(0);
  const Tensor& filter = context.input(1);
  float* y = context.output(0).data<float>();
  const onednn::Convolution convolution = fast_convolution(x.shape(), filter.shape(), attributes, depthwise);
  if (is_product(convolution, kProductPixels))
    onednn::multiply(pixels_of(x.shape(), x.data<float>()), matrix_of(filter.shape(), filter.data<float>()), y);
  else
    onednn::convolve(convolution, x.data<float>(), filter.data<float>(), y);
}

void convolution_backward_input(const BackwardContext& context, const Conv2dAttributes& attributes, bool depthwise) {
  const Tensor* d_x = context.d_inputs[0];
  if (d_x == nullptr) return;
  const Tensor& filter = context.forward->input(1);
  const float* d_y = context.d_outputs[0]->data<float>();
  const onednn::Convolution convolution = fast_convolution(d_x->shape(), filter.shape(), attributes, depthwise);
  if (is_product(convolution, kProductPixels))
    onednn::multiply(pixels_of(convolution.output, d_y), matrix_of(filter.shape(), filter.data<float>()).transposed(),
                     d_x->data<float>());
  else
    onednn::convolve_backward_input(convolution, d_y, filter.data<float>(), d_x->data<float>());
}

void convolution_backward_filter(const BackwardContext& context, const Conv2dAttributes& attributes, bool depthwise) {
  const Tensor* d_filter = context.d_inputs[1];
  if (d_filter == nullptr) return;
  const Tensor& x = context.forward->input(0);
  const float* d_y = context.d_outputs[0]->data<float>();
  const onednn::Convolution convolution = fast_convolution(x.shape(), d_filter->shape(), attributes, depthwise);
  if (is_product(convolution, kFilterGradientProductPixels))
    onednn::multiply(pixels_of(x.shape(), x.data<float>()).transposed(), pixels_of(convolution.output, d_y),
                     d_filter->data<float>());
  else
    onednn::convolve_backward_filter(convolution, x.data<float>(), d_y, d_filter->data<float>());
}

std::vector<TensorSpec> Conv2d::infer(std::span<const TensorSpec> inputs) const {
  return infer_convolution(inputs, attributes_, false);
}

OpTraits Conv2d::traits() const {
  OpTraits traits;
  traits.backward_inputs = {0, 1};
  traits.gradient_over_input = 1;
  return traits;
}

std::int64_t Conv2d::multiply_adds(std::span<const TensorSpec> inputs) const {
  const Shape& filter = inputs[1].shape;
  return infer(inputs)[0].shape.elements() * filter[0] * filter[1] * filter[2];
}

void Conv2d::forward(const ForwardContext& context) const { convolution_forward(context, attributes_, false); }

void Conv2d::backward(const BackwardContext& context) const {
  convolution_backward_input(context, attributes_, false);
  convolution_backward_filter(context, attributes_, false);
}

void Conv2d::reference_forward(const ForwardContext& context) const {
  const Tensor& x = context.input(0);
  const Tensor& filter = context.input(1);
  const Tensor& y = context.output(0);
  with_float_type(x, [&]<class T>(T) {
    reference::conv2d(window_of(x.shape(), filter.shape(), attributes_), x.shape(), filter.shape(), y.shape(),
                      x.data<T>(), filter.data<T>(), y.data<T>());
  });
}

void Conv2d::reference_backward(const BackwardContext& context) const {
  const Tensor& x = context.forward->input(0);
  const Tensor& filter = context.forward->input(1);
  const Tensor& d_y = *context.d_outputs[0];
  const Window2d window = window_of(x.shape(), filter.shape(), attributes_);
  with_float_type(x, [&]<class T>(T) {
    if (const Tensor* d_x = context.d_inputs[0])
      reference::conv2d_backward_input(window, x.shape(), filter.shape(), d_y.data<T>(), filter.data<T>(),
                                       d_x->data<T>());
    if (const Tensor* d_filter = context.d_inputs[1])
      reference::conv2d_backward_filter(window, x.shape(), filter.shape(), x.data<T>(), d_y.data<T>(),
                                        d_filter->data<T>());
  });
}

Output conv2d(Graph& graph, const std::string& name, Output x, Output filter, const Conv2dAttributes& attributes) {
  return graph.add(name, std::make_unique<Conv2d>(attributes), {x, filter}).output();
}

}  // namespace miniqat::layers
