#include "benchmarks/limit_stages.h"

#include <unordered_map>
#include <utility>

namespace miniqat::limit {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

constexpr auto kFloat = memory::data_type::f32;

memory::desc images(const Extents& e) { return {{e.n, e.c, e.h, e.w}, kFloat, memory::format_tag::nhwc}; }
memory::desc rows(const Extents& e) { return {{e.n, e.h * e.w * e.c}, kFloat, memory::format_tag::ab}; }
memory::desc vector(std::int64_t n) { return {{n}, kFloat, memory::format_tag::a}; }

/// The primitives of a layer, and the layouts that they want the weights in.
struct Kernels {
  dnnl::primitive forward, backward_weights;
  std::optional<dnnl::primitive> backward_input;
  memory::desc x, y, bias;
  memory::desc weights, d_weights, weights_of_backward;
  /// As Parameters have them.
  memory::desc plain_weights;
};

/// describe(layout of the weights) in the layout that forward has if that gives the same implementation as the layout
/// that it would choose itself: then no reorder is needed.
template <class Describe>
auto in_layout_of_forward(const memory::desc& forward, const memory::desc& any, const Describe& describe) {
  auto chosen = describe(any);
  try {
    auto same = describe(forward);
    if (std::string(same.impl_info_str()) == chosen.impl_info_str()) return same;
  } catch (const dnnl::error&) {
    // No implementation takes it.
  }
  return chosen;
}

dnnl::primitive_attr attributes_of(const LayerOptions& options) {
  return options.relu ? with_relu() : dnnl::primitive_attr();
}

Kernels compile_convolution(const Extents& in, const Extents& out, std::int64_t kernel, std::int64_t padding,
                            const LayerOptions& options) {
  using dnnl::algorithm;
  Kernels k;
  const memory::dims extents = {out.c, in.c, kernel, kernel}, strides = {1, 1}, skipped = {0, 0};
  const memory::dims pad = {padding, padding};
  const memory::desc any(extents, kFloat, memory::format_tag::any);
  k.x = images(in), k.y = images(out), k.bias = vector(out.c);
  k.plain_weights = memory::desc(extents, kFloat, memory::format_tag::hwio);
  const auto forward = describe<dnnl::convolution_forward>(attributes_of(options), dnnl::prop_kind::forward_training,
                                                           algorithm::convolution_direct, k.x, any, k.bias, k.y,
                                                           strides, skipped, pad, pad);
  k.weights = forward.weights_desc();
  const auto weights = in_layout_of_forward(k.weights, any, [&](const memory::desc& layout) {
    return describe_backward<dnnl::convolution_backward_weights>(forward, algorithm::convolution_direct, k.x, layout,
                                                                 k.bias, k.y, strides, skipped, pad, pad);
  });
  k.d_weights = weights.diff_weights_desc();
  k.forward = dnnl::convolution_forward(forward);
  k.backward_weights = dnnl::convolution_backward_weights(weights);
  if (options.d_input) {
    const auto input = in_layout_of_forward(k.weights, any, [&](const memory::desc& layout) {
      return describe_backward<dnnl::convolution_backward_data>(forward, algorithm::convolution_direct, k.x, layout,
                                                                k.y, strides, skipped, pad, pad);
    });
    k.weights_of_backward = input.weights_desc();
    k.backward_input = dnnl::convolution_backward_data(input);
  }
  return k;
}

Kernels compile_dense(const Extents& in, const Extents& out, const LayerOptions& options) {
  Kernels k;
  k.x = rows(in), k.y = rows(out), k.bias = vector(out.c);
  const memory::dims extents = {out.c, k.x.dims()[1]};
  const memory::desc any(extents, kFloat, memory::format_tag::any);
  k.plain_weights = memory::desc(extents, kFloat, memory::format_tag::ba);
  const auto forward = describe<dnnl::inner_product_forward>(attributes_of(options), dnnl::prop_kind::forward_training,
                                                             k.x, any, k.bias, k.y);
  k.weights = forward.weights_desc();
  const auto weights = in_layout_of_forward(k.weights, any, [&](const memory::desc& layout) {
    return describe_backward<dnnl::inner_product_backward_weights>(forward, k.x, layout, k.bias, k.y);
  });
  k.d_weights = weights.diff_weights_desc();
  k.forward = dnnl::inner_product_forward(forward);
  k.backward_weights = dnnl::inner_product_backward_weights(weights);
  if (options.d_input) {
    const auto input = in_layout_of_forward(k.weights, any, [&](const memory::desc& layout) {
      return describe_backward<dnnl::inner_product_backward_data>(forward, k.x, layout, k.y);
    });
    k.weights_of_backward = input.weights_desc();
    k.backward_input = dnnl::inner_product_backward_data(input);
  }
  return k;
}

/// Memory for a tensor in another layout than the one at hand, and the reorder between them; nothing where the layouts
/// are the same.
class Relayout {
 public:
  Relayout(const memory::desc& wanted, const memory::desc& at_hand) : needed_(wanted != at_hand) {
    if (needed_) buffer_ = Buffer(wanted);
  }
  /// The memory of the other layout.
  memory in(const memory::desc& wanted, const memory& at_hand) const { return needed_ ? buffer_.as(wanted) : at_hand; }
  void prepare(const memory& from, const memory& to) {
    if (needed_) reorder_ = dnnl::reorder(from, to), from_ = from, to_ = to;
  }
  void run() {
    if (needed_) reorder_.execute(stream(), from_, to_);
  }

 private:
  bool needed_;
  Buffer buffer_;
  dnnl::reorder reorder_;
  memory from_, to_;
};

class Layer final : public Stage {
 public:
  Layer(const Flow& from, const Extents& out, Kernels kernels, const LayerOptions& options,
        const Parameters& parameters)
      : options_(options),
        kernels_(std::move(kernels)),
        flow_(out),
        weights_(kernels_.weights),
        d_weights_(kernels_.weights),
        v_weights_(kernels_.weights),
        biases_(out.c),
        d_biases_(out.c),
        v_biases_(out.c),
        d_weights_relayout_(kernels_.d_weights, kernels_.weights),
        backward_relayout_(options.d_input ? kernels_.weights_of_backward : kernels_.weights, kernels_.weights) {
    if (options_.bits != 0) prepare_quantizers();
    const Kernels& k = kernels_;
    memory plain(k.plain_weights, engine(), const_cast<float*>(parameters.weights));
    memory inside = weights_.as(k.weights);
    dnnl::reorder(plain, inside).execute(stream(), plain, inside);
    std::copy_n(parameters.biases, out.c, biases_.data());

    const memory used = (options_.bits != 0 ? quantized_weights_ : weights_).as(k.weights);
    const memory d_plain = d_weights_.as(k.weights);
    const memory d_weights = d_weights_relayout_.in(k.d_weights, d_plain);
    const memory backward_weights = options_.d_input ? backward_relayout_.in(k.weights_of_backward, used) : used;
    d_weights_relayout_.prepare(d_weights, d_plain);
    backward_relayout_.prepare(used, backward_weights);
    const memory x = from.y.as(k.x), d_y = flow_.d.as(k.y);
    forward_ = {{DNNL_ARG_SRC, x},
                {DNNL_ARG_WEIGHTS, used},
                {DNNL_ARG_BIAS, biases_.as(k.bias)},
                {DNNL_ARG_DST, flow_.y.as(k.y)}};
    backward_weights_ = {{DNNL_ARG_SRC, x},
                         {DNNL_ARG_DIFF_DST, d_y},
                         {DNNL_ARG_DIFF_WEIGHTS, d_weights},
                         {DNNL_ARG_DIFF_BIAS, d_biases_.as(k.bias)}};
    backward_input_ = {
        {DNNL_ARG_DIFF_DST, d_y}, {DNNL_ARG_WEIGHTS, backward_weights}, {DNNL_ARG_DIFF_SRC, from.d.as(k.x)}};
  }

  void forward() override {
    if (options_.bits != 0) {
      weight_quantizer_.observe(weights_);
      quantize(weight_quantizer_, false, weights_, quantized_weights_, weight_mask_);
    }
    kernels_.forward.execute(stream(), forward_);
    if (options_.bits != 0) {
      output_quantizer_.observe(flow_.y);
      quantize(output_quantizer_, options_.relu, flow_.y, flow_.y, output_mask_);
    }
  }

  void backward() override {
    if (options_.bits != 0)
      apply_mask(output_mask_, flow_.d);
    else if (options_.relu)
      apply_relu_gradient(flow_.y, flow_.d);
    kernels_.backward_weights.execute(stream(), backward_weights_);
    d_weights_relayout_.run();
    if (!kernels_.backward_input) return;
    backward_relayout_.run();
    kernels_.backward_input->execute(stream(), backward_input_);
  }

  void update(const Descent& descent) override {
    descend(descent, options_.bits != 0 ? &weight_mask_ : nullptr, weights_, v_weights_, d_weights_);
    Descent without_decay = descent;
    without_decay.weight_decay = 0;
    descend(without_decay, nullptr, biases_, v_biases_, d_biases_);
  }

  const Flow& flow() const override { return flow_; }

 private:
  void prepare_quantizers() {
    quantized_weights_ = Buffer(kernels_.weights);
    weight_mask_ = Mask(weights_);
    output_mask_ = Mask(flow_.y);
    weight_quantizer_.bits = output_quantizer_.bits = options_.bits;
    weight_quantizer_.narrow_range = true;
    weight_quantizer_.moving_average = false;
  }

  LayerOptions options_;
  Kernels kernels_;
  Flow flow_;
  Buffer weights_, d_weights_, v_weights_, quantized_weights_;
  Buffer biases_, d_biases_, v_biases_;
  Relayout d_weights_relayout_, backward_relayout_;
  Quantizer weight_quantizer_, output_quantizer_;
  Mask weight_mask_, output_mask_;
  Arguments forward_, backward_weights_, backward_input_;
};

Extents pooled(const Extents& in) { return {in.n, in.h / 2, in.w / 2, in.c}; }

class MaxPool final : public Stage {
 public:
  explicit MaxPool(const Flow& from) : flow_(pooled(from.extents)) {
    const memory::desc x = images(from.extents), y = images(flow_.extents);
    const memory::dims window = {2, 2}, skipped = {0, 0}, pad = {0, 0};
    const auto algorithm = dnnl::algorithm::pooling_max;
    const auto forward = describe<PoolingForward>({}, dnnl::prop_kind::forward_training, algorithm, x, y, window,
                                                  window, skipped, pad, pad);
    const auto backward =
        describe_backward<PoolingBackward>(forward, algorithm, x, y, window, window, skipped, pad, pad);
    const memory winners(forward.workspace_desc(), engine());
    forward_primitive_ = PoolingForward(forward);
    backward_primitive_ = PoolingBackward(backward);
    forward_ = {{DNNL_ARG_SRC, from.y.as(x)}, {DNNL_ARG_DST, flow_.y.as(y)}, {DNNL_ARG_WORKSPACE, winners}};
    backward_ = {{DNNL_ARG_DIFF_DST, flow_.d.as(y)}, {DNNL_ARG_DIFF_SRC, from.d.as(x)}, {DNNL_ARG_WORKSPACE, winners}};
  }

  void forward() override { forward_primitive_.execute(stream(), forward_); }
  void backward() override { backward_primitive_.execute(stream(), backward_); }
  const Flow& flow() const override { return flow_; }

 private:
  Flow flow_;
  dnnl::primitive forward_primitive_, backward_primitive_;
  Arguments forward_, backward_;
};

class Dropout final : public Stage {
 public:
  explicit Dropout(const Flow& from) : flow_(from) {}
  void forward() override { drop_half(++key_ * 0x9e3779b9u, flow_.y); }
  void backward() override { drop_half(key_ * 0x9e3779b9u, flow_.d); }
  const Flow& flow() const override { return flow_; }

 private:
  const Flow& flow_;
  std::uint32_t key_ = 0;
};

}  // namespace

std::unique_ptr<Stage> convolution(const Flow& from, const ConvolutionShape& shape, const LayerOptions& options,
                                   const Parameters& parameters) {
  const Extents& in = from.extents;
  const std::int64_t padding = shape.same ? shape.kernel / 2 : 0;
  const std::int64_t lost = shape.kernel - 1 - 2 * padding;
  const Extents out = {in.n, in.h - lost, in.w - lost, shape.channels};
  return std::make_unique<Layer>(from, out, compile_convolution(in, out, shape.kernel, padding, options), options,
                                 parameters);
}

std::unique_ptr<Stage> dense(const Flow& from, std::int64_t outputs, const LayerOptions& options,
                             const Parameters& parameters) {
  const Extents out = {.n = from.extents.n, .c = outputs};
  return std::make_unique<Layer>(from, out, compile_dense(from.extents, out, options), options, parameters);
}

std::unique_ptr<Stage> max_pool(const Flow& from) { return std::make_unique<MaxPool>(from); }

std::unique_ptr<Stage> dropout(const Flow& from) { return std::make_unique<Dropout>(from); }

}  // namespace miniqat::limit
