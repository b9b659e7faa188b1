#include "layers/matmul.h"

#include <array>

#include "core/graph/op.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/onednn.h"
#include "core/kernels/onednn_matrix.h"
#include "core/kernels/scratch.h"
#include "core/text/error.h"
#include "layers/kernels/bfloat16_factors.h"
#include "layers/kernels/byte_gradient.h"
#include "layers/kernels/packed_product.h"
#include "layers/reference/matmul.h"

namespace miniqat::layers {
namespace {

/// The matrix that an input stands for: as stored in `numbers`, or transposed.
template <class T>
onednn::MatrixOf<T> fast_view(const T* numbers, const Shape& shape, bool transpose) {
  const auto stored = onednn::MatrixOf<T>::row_major(numbers, shape[0], shape[1]);
  return transpose ? stored.transposed() : stored;
}

onednn::Matrix fast_view(const Tensor& tensor, bool transpose) {
  return fast_view(tensor.data<float>(), tensor.shape(), transpose);
}

template <class T>
reference::Matrix<T> reference_view(T* data, const Shape& shape, bool transpose) {
  const reference::Matrix<T> stored = {data, shape[0], shape[1], shape[1], 1};
  return transpose ? stored.transposed() : stored;
}

void require_matrix(const TensorSpec& input, std::string_view role) {
  if (input.shape.rank() != 2)
    fail(role, " must be a matrix, has rank ", input.shape.rank(), input.shape.rank() > 2 ? " (Reshape it first)" : "",
         "; ", role, " ", input.shape);
}

class MatMulOp final : public OpOf<MatMul>, public MultipliesAndAdds, public ReadsPacked {
 public:
  using OpOf::OpOf;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    require_inputs(inputs, 2);
    require_float(inputs);
    require_matrix(inputs[0], "a");
    require_matrix(inputs[1], "b");
    require_elements(inputs);
    const Shape& a = inputs[0].shape;
    const Shape& b = inputs[1].shape;
    const std::int64_t a_columns = a[attributes_.transpose_a ? 0 : 1];
    const std::int64_t b_rows = b[attributes_.transpose_b ? 1 : 0];
    if (a_columns != b_rows)
      fail("a", attributes_.transpose_a ? " transposed" : "", " has ", counted(a_columns, "column"), ", b",
           attributes_.transpose_b ? " transposed" : "", " has ", counted(b_rows, "row"), "; a ", a, ", b ", b);
    return {{Shape{a[attributes_.transpose_a ? 1 : 0], b[attributes_.transpose_b ? 0 : 1]}}};
  }

  OpTraits traits() const override { return {.gradient_over_input = 1, .backward_inputs = {0, 1}}; }

  std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const override {
    return infer(inputs)[0].shape.elements() * inputs[0].shape[attributes_.transpose_a ? 0 : 1];
  }

  /// Faster from about a million products on: below, what surrounds them weighs more.
  std::string why_not_packed(std::span<const TensorSpec> inputs, std::span<const PackedForm> forms) const override {
    constexpr std::int64_t kWorthIt = std::int64_t{1} << 20;
    const Shape& b = inputs[1].shape;
    if (attributes_.transpose_a || attributes_.transpose_b) return "a transposed factor";
    if (multiply_adds(inputs) < kWorthIt)
      return miniqat::concat(multiply_adds(inputs), " products, less than ", kWorthIt);
    return forms.empty() ? "" : why_inexact(forms, b[0], b[1]);
  }

  bool rounds_factors(std::span<const TensorSpec> inputs) const override {
    return multiply_adds(inputs) >= kWorthRounding;
  }

  bool has_packed_gradients(std::span<const TensorSpec> inputs, std::span<const PackedForm> forms,
                            FactorRounding rounding) const override {
    return rounding != FactorRounding::kGradientsToInt8 ||
           (rounds_factors(inputs) && has_exact_byte_gradients(pixels_of(inputs[0].shape, inputs[1].shape), forms[1]));
  }

  void forward(const ForwardContext& context) const override {
    if (!context.packed_inputs.empty()) return packed_forward(context);
    if (context.rounding == FactorRounding::kAllToBfloat16) {
      ScratchScope scope;
      return onednn::multiply(rounded_view(context.input(0), attributes_.transpose_a, scope),
                              rounded_view(context.input(1), attributes_.transpose_b, scope),
                              context.output(0).data<float>());
    }
    onednn::multiply(fast_view(context.input(0), attributes_.transpose_a),
                     fast_view(context.input(1), attributes_.transpose_b), context.output(0).data<float>());
  }

  void backward(const BackwardContext& context) const override {
    const auto [transpose_a, transpose_b] = attributes_;
    const Tensor &a = context.forward->input(0), &b = context.forward->input(1), &d_y = *context.d_outputs[0];
    const bool rounds = context.forward->rounding != FactorRounding::kNone;
    if (context.forward->rounding == FactorRounding::kGradientsToInt8) {
      const ForwardContext& forward = *context.forward;
      return byte_backward(pixels_of(a.shape(), b.shape()), {forward.packed_forms[0], *forward.packed_inputs[0]},
                           {forward.packed_forms[1], *forward.packed_inputs[1]}, d_y.data<float>(), forward.random_key,
                           forward.slice * d_y.elements(), context.d_inputs[0], context.d_inputs[1]);
    }
    if (rounds && !context.forward->packed_inputs.empty()) return packed_backward(context);
    if (!rounds)
      return multiply_gradients(context, fast_view(a, transpose_a), fast_view(b, transpose_b), fast_view(d_y, false));
    ScratchScope scope;
    multiply_gradients(context, rounded_view(a, transpose_a, scope), rounded_view(b, transpose_b, scope),
                       rounded_view(d_y, false, scope));
  }

  void reference_forward(const ForwardContext& context) const override {
    with_float_type(context.input(0), [&]<class T>(T) {
      const Tensor &a = context.input(0), &b = context.input(1);
      Tensor& y = context.output(0);
      reference::matmul(reference_view(a.data<T>(), a.shape(), attributes_.transpose_a),
                        reference_view(b.data<T>(), b.shape(), attributes_.transpose_b),
                        reference_view(y.data<T>(), y.shape(), false));
    });
  }

  void reference_backward(const BackwardContext& context) const override {
    const Tensor &a = context.forward->input(0), &b = context.forward->input(1), &d_y = *context.d_outputs[0];
    with_float_type(a, [&]<class T>(T) {
      const auto [transpose_a, transpose_b] = attributes_;
      const auto d_product = reference_view(d_y.data<T>(), d_y.shape(), false);
      if (Tensor* d_a = context.d_inputs[0])
        reference::matmul(d_product, reference_view(b.data<T>(), b.shape(), transpose_b).transposed(),
                          reference_view(d_a->data<T>(), d_a->shape(), transpose_a));
      if (Tensor* d_b = context.d_inputs[1])
        reference::matmul(reference_view(a.data<T>(), a.shape(), transpose_a).transposed(), d_product,
                          reference_view(d_b->data<T>(), d_b->shape(), transpose_b));
    });
  }

 private:
  /// Each row is a picture of one pixel.
  static onednn::Convolution pixels_of(const Shape& a, const Shape& b) {
    return {.input = {a[0], 1, 1, a[1]}, .filter = {1, 1, a[1], b[1]}, .output = {a[0], 1, 1, b[1]}};
  }

  /// Multiply-adds from which on rounding pays. On two threads of a Zen 4, roundings included, bfloat16 is 1.5 times as
  /// fast at 128 x 3136 x 1024 in forward, 1.2 and 1.8 times in the gradients; 1.0 at 128 x 400 x 120.
  static constexpr std::int64_t kWorthRounding = std::int64_t{1} << 23;

  static onednn::MatrixOf<Bfloat16> rounded_view(const Tensor& tensor, bool transpose, ScratchScope& scope) {
    return fast_view(rounded_to_bfloat16(tensor.data<float>(), tensor.elements(), scope), tensor.shape(), transpose);
  }

  // With y = a b: d_a = d_y b^T and d_b = a^T d_y. If a is stored transposed, so is its gradient: d_a^T = b d_y^T.
  template <class T>
  void multiply_gradients(const BackwardContext& context, const onednn::MatrixOf<T>& a, const onednn::MatrixOf<T>& b,
                          const onednn::MatrixOf<T>& d_y) const {
    if (Tensor* d_a = context.d_inputs[0])
      attributes_.transpose_a ? onednn::multiply(b, d_y.transposed(), d_a->data<float>())
                              : onednn::multiply(d_y, b.transposed(), d_a->data<float>());
    if (Tensor* d_b = context.d_inputs[1])
      attributes_.transpose_b ? onednn::multiply(d_y.transposed(), a, d_b->data<float>())
                              : onednn::multiply(a.transposed(), d_y, d_b->data<float>());
  }

  void packed_backward(const BackwardContext& context) const {
    const ForwardContext& forward = *context.forward;
    const Shape &a = forward.input(0).shape(), &b = forward.input(1).shape();
    const Tensor& d_y = *context.d_outputs[0];
    ScratchScope scope;
    const PackedGradientFactors factors({forward.packed_forms[0], *forward.packed_inputs[0]},
                                        {forward.packed_forms[1], *forward.packed_inputs[1]}, d_y.data<float>(),
                                        d_y.elements(), b[1], scope);
    multiply_gradients(context, fast_view(factors.x(), a, false), fast_view(factors.filter(), b, false),
                       fast_view(factors.d_output(), d_y.shape(), false));
    if (Tensor* d_b = context.d_inputs[1]) factors.scale(d_b->data<float>());
  }

  void packed_forward(const ForwardContext& context) const {
    const Shape &a = context.input(0).shape(), &b = context.input(1).shape();
    Tensor& y = context.output(0);
    ScratchScope scope;
    PackedProduct product({context.packed_forms[0], *context.packed_inputs[0]},
                          {context.packed_forms[1], *context.packed_inputs[1]}, b[1], scope);
    onednn::multiply(fast_view(product.x(), a, false), fast_view(product.filter(), b, false),
                     static_cast<std::int32_t*>(y.raw()));
    product.finish(y.data<float>(), y.elements(),
                   product.needs_sums_of_x() ? sums_of_windows(pixels_of(a, b), product.x(), scope)
                                             : std::span<const std::int32_t>());
  }
};

}  // namespace

std::shared_ptr<Op> MatMul::make(const Attributes& attributes) { return std::make_shared<MatMulOp>(attributes); }

}  // namespace miniqat::layers
