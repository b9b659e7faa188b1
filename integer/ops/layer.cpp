#include "integer/ops/layer.h"

#include <cmath>

#include "integer/kernels/convolution.h"
#include "integer/kernels/depthwise.h"
#include "integer/ops/operation_check.h"

namespace miniqat::integer {
namespace {

void check_weights(const Layer& layer, const OperationCheck& rules) {
  rules.require(layer.weight_bits >= 2 && layer.weight_bits <= 8, "has weights of ", layer.weight_bits,
                " bits; 2 to 8 are known");
  rules.require(static_cast<std::int64_t>(layer.weights.size()) == layer.filter.elements(), "has ",
                counted(layer.weights.size(), "weight"), " for ", layer.filter);
  const std::int32_t largest = (1 << layer.weight_bits) - 1;
  for (const std::uint8_t weight : layer.weights)
    rules.require(weight <= largest, "has a weight ", int{weight}, " beyond ", largest);
  const auto channels = static_cast<std::size_t>(layer.output_channels());
  const std::size_t grids = layer.weight_scales.size();
  rules.require(grids == 1 || grids == channels, "has ", grids, " weight scales for ", counted(channels, "channel"));
  rules.require(layer.weight_zero_points.size() == grids && layer.multipliers.size() == grids,
                "has as many zero points and multipliers as weight scales");
  rules.require(layer.bias.size() == channels, "has ", layer.bias.size(), " biases for ", counted(channels, "channel"));
  for (std::size_t i = 0; i < grids; ++i) {
    rules.require(std::isnormal(layer.weight_scales[i]) && layer.weight_scales[i] > 0, "has a weight scale of ",
                  layer.weight_scales[i]);
    rules.require(layer.weight_zero_points[i] >= 0 && layer.weight_zero_points[i] <= largest,
                  "has a weight zero point ", layer.weight_zero_points[i], " beyond ", largest);
    rules.require_multiplier(layer.multipliers[i]);
  }
}

void require_sums_fit(const Layer& layer, const OperationCheck& rules) {
  const std::int64_t channels = layer.output_channels(), farthest = rules.farthest();
  std::vector<std::int64_t> sums(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < layer.filter.elements(); ++i)
    sums[i % channels] += std::abs(layer.weight_units(i)) * farthest;
  for (std::int64_t o = 0; o < channels; ++o)
    rules.require(sums[o] + std::abs(std::int64_t{layer.bias[o]}) <= INT32_MAX, "channel ", o,
                  " may have a sum that does not fit 32 bits: ", sums[o], " and a bias of ", layer.bias[o]);
}

/// A layer left to the plain loops.
void run_plain(const Model& model, const Operation& operation, std::int64_t n, StepInputs inputs,
               std::uint8_t* output) {
  const TensorInfo &x = model.input_of(operation), &y = model.output_of(operation);
  const auto bytes_of = [n](const TensorInfo& info) { return static_cast<std::size_t>(n * info.shape.elements()); };
  const Operand operand = {.integers = {inputs[0], bytes_of(x)}, .shape = x.shape, .grid = x.grid};
  const Result result = {
      .n = n, .integers = {output, bytes_of(y)}, .shape = y.shape, .grid = y.grid, .clamp = operation.clamp};
  std::get<Layer>(operation.action).apply(std::span(&operand, 1), result);
}

template <class Kernel>
Step kernel_step(const auto&... given) {
  return [kernel = std::make_shared<const Kernel>(given...)](std::int64_t n, StepInputs inputs, std::uint8_t* output) {
    kernel->run(n, inputs, output);
  };
}

}  // namespace

std::vector<float> Layer::unit_scales() const {
  std::vector<float> scales = weight_scales;
  for (float& scale : scales) scale /= static_cast<float>(1 << weight_shift());
  return scales;
}

void Layer::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  const Shape& input = rules.input().shape;
  if (kind == LayerKind::kFullyConnected) {
    rules.require(filter.rank() == 2 && input == Shape{filter[0]}, "has weights ", filter, ", its input is ", input);
    for (const WindowAxis& axis : {window.rows, window.columns})
      rules.require(axis.input == 1 && axis.window == 1 && axis.output == 1 && axis.stride == 1 && axis.dilation == 1 &&
                        axis.pad_before == 0 && axis.pad_after == 0,
                    "has a window");
    rules.require_output_shape({filter[1]});
  } else {
    rules.require_window(window);
    rules.require(filter.rank() == 4 && filter[0] == window.rows.window && filter[1] == window.columns.window &&
                      filter[2] == input[2],
                  "has weights ", filter, ", its input is ", input);
    rules.require_output_shape({window.rows.output, window.columns.output, output_channels()});
  }
  check_weights(*this, rules);
  require_sums_fit(*this, rules);
}

Step Layer::make_step(const Model& model, const Operation& operation, const Operation* pool) const {
  // The pool's output has the grid of its input; its clamp does nothing.
  const TensorInfo &x = model.input_of(operation), &y = model.output_of(operation);
  const bool depthwise = kind == LayerKind::kDepthwiseConv2d;
  const std::int64_t scratch = depthwise ? Depthwise::scratch_bytes(*this) : Convolution::scratch_bytes(*this);
  // (No pool is fused into these.)
  if (scratch > kMostScratch) return std::bind_front(run_plain, std::cref(model), std::cref(operation));
  if (depthwise) return kernel_step<Depthwise>(*this, x, y, operation.clamp);
  const auto* window = pool == nullptr ? nullptr : &std::get<MaxPool>(pool->action);
  return kernel_step<Convolution>(*this, x, y, operation.clamp, window);
}

}  // namespace miniqat::integer
