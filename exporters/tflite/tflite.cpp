#include "exporters/tflite/tflite.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/text/error.h"
#include "exporters/properties.h"
#include "exporters/tflite/graph.h"
#include "exporters/tflite/rules.h"

namespace miniqat::exporters {

using integer::Add;
using integer::AveragePool;
using integer::Clamp;
using integer::Concat;
using integer::Grid;
using integer::Layer;
using integer::LayerKind;
using integer::Lookup;
using integer::MaxPool;
using integer::Model;
using integer::Mul;
using integer::Operation;
using integer::Pad;
using integer::Rescale;
using integer::Reshape;
using integer::Slice;
using integer::TensorInfo;
using tflite_schema::OperatorKind;
using tflite_schema::Options;
using tflite_schema::Padding;
using tflite_schema::TensorType;

namespace {

/// A function that is an operator of TensorFlow Lite.
struct TfliteFunction {
  std::string_view name;
  OperatorKind kind;
  /// The only grid that the operator writes to; any where there is none.
  std::optional<Grid> grid = {};
  std::int32_t int8_version = 2;
};

const std::array<TfliteFunction, 2> kTfliteFunctions = {
    {{.name = "Sigmoid", .kind = OperatorKind::LOGISTIC, .grid = Grid{.scale = 1.0f / 256, .zero_point = 0}},
     {.name = "HardSwish", .kind = OperatorKind::HARD_SWISH, .int8_version = 1}}};

std::int32_t to_int(std::int64_t extent) { return static_cast<std::int32_t>(extent); }

bool same_numbers(const Grid& a, const Grid& b) { return a.scale == b.scale && a.zero_point == b.zero_point; }

/// Throws Error where `int4` is asked for and no layer has such weights.
TfliteIntegers tflite_integers(const Model& model, const TfliteOptions& options) {
  const auto any_layer = [&](const auto& has) {
    return std::ranges::any_of(model.operations, [&](const Operation& operation) {
      const auto* layer = std::get_if<Layer>(&operation.action);
      return layer != nullptr && has(*layer);
    });
  };
  if (options.int4) {
    if (!any_layer([](const Layer& layer) { return layer.weight_bits <= kInt4Bits; }))
      fail(
          "tflite: no layer has weights of at most 4 bits, which --int4 stores as INT4: leave it out, or train or calibrate with --weight-bits 4 --activation-bits 8 --symmetric-weights");
    return TfliteIntegers::kInt4;
  }
  if (any_layer([](const Layer& layer) { return layer.per_channel(); })) return TfliteIntegers::kInt8ForChannels;
  return options.int8 ? TfliteIntegers::kInt8AsAsked : TfliteIntegers::kUInt8;
}

class Exporter {
 public:
  Exporter(const Model& model, const TfliteOptions& options)
      : model_(model),
        options_(options),
        integers_(tflite_integers(model, options)),
        graph_(integers_ != TfliteIntegers::kUInt8),
        tensors_(model.tensors.size()) {}

  std::string run() {
    const std::int32_t input = add_input();
    for (const Operation& operation : model_.operations) {
      operation_ = &operation;
      tensors_[operation.output] = std::visit([this](const auto& action) { return add(action); }, operation.action);
    }
    const std::int32_t output = add_output();
    for (const auto& [key, value] :
         properties(model_.class_names, model_.task, model_.input_standard, model_.output_standard))
      graph_.add_metadata(key, value);
    return graph_.finish(model_.name, input, output);
  }

 private:
  std::int32_t add_input() {
    const TensorInfo& info = model_.tensor(model_.input);
    const std::int32_t integers = tensors_[model_.input] = graph_.add_tensor(info);
    if (!options_.float_io) return integers;
    const std::int32_t input = graph_.add_float_tensor(info.name + "/float", info.shape);
    graph_.add_operator({.kind = OperatorKind::QUANTIZE}, {input}, integers);
    return input;
  }
  std::int32_t add_output() {
    const TensorInfo& info = model_.tensor(model_.output);
    const std::int32_t integers = tensors_[model_.output];
    if (!options_.float_io) return integers;
    const std::int32_t output = graph_.add_float_tensor(info.name + "/dequantized", info.shape);
    graph_.add_operator({.kind = OperatorKind::DEQUANTIZE, .version = graph_.version()}, {integers}, output);
    return output;
  }

  std::string who() const { return concat("[", type_name(operation_->action), " \"", operation_->name, "\"]"); }
  const TensorInfo& in(std::size_t i = 0) const { return model_.input_of(*operation_, i); }
  const TensorInfo& out() const { return model_.output_of(*operation_); }
  std::int32_t input(std::size_t i = 0) const { return tensors_[operation_->inputs[i]]; }
  std::string part(const char* what) const { return concat(operation_->name, "/", what); }

  /// The operation's output, by an operator that fuses activations.
  template <class Write>
  std::int32_t fused(const Write& write) {
    return graph_.clamped(who(), out(), operation_->clamp, true, kByteMax, write);
  }
  std::int32_t bordered(Window2d& window, std::optional<std::int32_t> value);

  // Each returns the tensor that holds the operation's output.
  std::int32_t add(const Layer& layer);
  std::int32_t add_convolution(const Layer& layer, bool int4, std::int32_t weights, std::int32_t bias);
  std::int32_t add(const Add&);
  std::int32_t add(const Mul&);
  std::int32_t add(const Rescale&) { return graph_.rescaled(who(), input(), in().grid, out(), operation_->clamp); }
  std::int32_t add(const Concat& concat);
  std::int32_t add(const AveragePool& pool);
  std::int32_t add_mean();
  std::int32_t add(const MaxPool& pool);
  void add_pool(OperatorKind kind, const Window2d& window, std::int32_t input, const TfliteTarget& target);
  std::int32_t add(const Reshape&);
  std::int32_t add(const Pad& pad) { return graph_.padded(input(), pad.paddings, out(), std::nullopt); }
  std::int32_t add(const Slice& slice) { return graph_.sliced(who(), input(), slice, out()); }
  std::int32_t add(const Lookup& lookup);

  const Model& model_;
  const TfliteOptions& options_;
  const TfliteIntegers integers_;
  TfliteGraph graph_;
  /// The file's index for each of the model's tensors added so far.
  std::vector<std::int32_t> tensors_;
  const Operation* operation_ = nullptr;
};

/// The operation's input, with those borders of `value` (or of its zero point) that neither SAME nor VALID gives it;
/// the window is then one without padding.
std::int32_t Exporter::bordered(Window2d& window, std::optional<std::int32_t> value) {
  if (tflite_padding(window)) return input();
  const std::vector<std::array<std::int64_t, 2>> paddings = {
      tflite_borders(window.rows), tflite_borders(window.columns), {0, 0}};
  window = with_borders(window);
  if (!tflite_padding(window)) fail("tflite: ", who(), " leaves out windows that fit; TensorFlow Lite visits them all");
  const TensorInfo image = {
      .name = part("padded"), .shape = {window.rows.input, window.columns.input, in().shape[2]}, .grid = in().grid};
  return graph_.padded(input(), paddings, image, value);
}

std::int32_t Exporter::add(const Layer& layer) {
  const TfliteWeights weights = tflite_weights(*operation_, layer, integers_);
  const std::int32_t weights_tensor = graph_.add_constant({.name = part("weights"),
                                                           .shape = weights.shape,
                                                           .type = weights.type,
                                                           .scales = weights.scales,
                                                           .zero_points = weights.zero_points,
                                                           .quantized_axis = weights.channel_axis},
                                                          weights.bytes);
  std::vector<float> bias_scales;
  for (const float scale : weights.scales) bias_scales.push_back(in().grid.scale * scale);
  const std::int32_t bias = graph_.add_constant({.name = part("bias"),
                                                 .shape = {to_int(layer.output_channels())},
                                                 .type = TensorType::INT32,
                                                 .scales = bias_scales,
                                                 .zero_points = std::vector<std::int64_t>(bias_scales.size())},
                                                weights.bias);
  const bool int4 = weights.type == TensorType::INT4;
  if (layer.kind != LayerKind::kFullyConnected) return add_convolution(layer, int4, weights_tensor, bias);
  return fused([&](const TfliteTarget& target) {
    graph_.add_operator(
        {.kind = OperatorKind::FULLY_CONNECTED,
         .version = int4                 ? 10
                    : graph_.is_signed() ? 4
                                         : 1,
         .options_type = Options::FullyConnectedOptions,
         .options = tflite_schema::CreateFullyConnectedOptions(graph_.builder(), target.activation).Union()},
        {input(), weights_tensor, bias}, target.tensor);
  });
}

std::int32_t Exporter::add_convolution(const Layer& layer, bool int4, std::int32_t weights, std::int32_t bias) {
  Window2d window = layer.window;
  const std::int32_t image = bordered(window, std::nullopt);
  const Padding padding = *tflite_padding(window);
  const std::int32_t stride_w = to_int(window.columns.stride), stride_h = to_int(window.rows.stride);
  const std::int32_t dilation_w = to_int(window.columns.dilation), dilation_h = to_int(window.rows.dilation);
  return fused([&](const TfliteTarget& target) {
    TfliteOperator op;
    if (layer.kind == LayerKind::kConv2d) {
      op = {.kind = OperatorKind::CONV_2D, .version = 1, .options_type = Options::Conv2DOptions};
      op.options =
          CreateConv2DOptions(graph_.builder(), padding, stride_w, stride_h, target.activation, dilation_w, dilation_h)
              .Union();
    } else {
      op = {.kind = OperatorKind::DEPTHWISE_CONV_2D,
            .version = dilation_w > 1 || dilation_h > 1 ? 2 : 1,
            .options_type = Options::DepthwiseConv2DOptions};
      op.options = CreateDepthwiseConv2DOptions(graph_.builder(), padding, stride_w, stride_h, to_int(layer.filter[3]),
                                                target.activation, dilation_w, dilation_h)
                       .Union();
    }
    if (graph_.is_signed()) op.version = int4 ? 7 : 3;
    graph_.add_operator(op, {image, weights, bias}, target.tensor);
  });
}

std::int32_t Exporter::add(const Add&) {
  return fused([&](const TfliteTarget& target) {
    graph_.add_operator({.kind = OperatorKind::ADD,
                         .version = graph_.version(),
                         .options_type = Options::AddOptions,
                         .options = CreateAddOptions(graph_.builder(), target.activation).Union()},
                        {input(0), input(1)}, target.tensor);
  });
}

std::int32_t Exporter::add(const Mul&) {
  const bool grows = in(0).grid.scale * in(1).grid.scale >= out().grid.scale;
  return fused([&](const TfliteTarget& target) { graph_.add_mul(input(0), input(1), grows, target); });
}

std::int32_t Exporter::add(const Concat& concat) {
  const Clamp& clamp = operation_->clamp;
  std::vector<std::int32_t> parts;
  for (std::size_t i = 0; i < operation_->inputs.size(); ++i) {
    const Grid& grid = in(i).grid;
    const bool passes = same_numbers(grid, out().grid) && clamp.min == 0 && clamp.max >= grid.quant_max();
    const TensorInfo part = {.name = miniqat::concat(out().name, "/", i), .shape = in(i).shape, .grid = out().grid};
    parts.push_back(passes ? input(i) : graph_.rescaled(who(), input(i), grid, part, clamp));
  }
  const std::int32_t output = graph_.add_tensor(out());
  graph_.add_operator({.kind = OperatorKind::CONCATENATION,
                       .version = graph_.version(),
                       .options_type = Options::ConcatenationOptions,
                       .options = tflite_schema::CreateConcatenationOptions(graph_.builder(), concat.axis + 1).Union()},
                      parts, output);
  return output;
}

std::int32_t Exporter::add(const AveragePool& pool) {
  if (pool.is_global()) return add_mean();
  const auto& [rows, columns] = pool.window;
  if (!tflite_padding(pool.window) || rows.dilation * columns.dilation != 1 || out().shape.rank() != 3)
    fail("tflite: ", who(), " averages windows that TensorFlow Lite's rules SAME and VALID do not make");
  const auto add_average = [&](const TfliteTarget& target) {
    add_pool(OperatorKind::AVERAGE_POOL_2D, pool.window, input(), target);
  };
  if (same_numbers(in().grid, out().grid))
    return graph_.clamped(who(), out(), operation_->clamp, true, in().grid.quant_max(), add_average);
  // AVERAGE_POOL_2D keeps its input's grid.
  const std::int32_t averages = graph_.add_tensor({.name = part("averages"), .shape = out().shape, .grid = in().grid});
  add_average({.tensor = averages});
  return graph_.rescaled(who(), averages, in().grid, out(), operation_->clamp);
}

/// Over the whole image. Unlike AVERAGE_POOL_2D, MEAN has an output on a grid of its own.
std::int32_t Exporter::add_mean() {
  const std::int32_t reach = same_numbers(in().grid, out().grid) ? in().grid.quant_max() : kByteMax;
  const std::int32_t axes = graph_.add_integers(part("axes"), {2}, {1, 2});
  return graph_.clamped(who(), out(), operation_->clamp, false, reach, [&](const TfliteTarget& target) {
    graph_.add_operator(
        {.kind = OperatorKind::MEAN,
         .version = graph_.version(),
         .options_type = Options::ReducerOptions,
         .options = tflite_schema::CreateReducerOptions(graph_.builder(), out().shape.rank() == 3).Union()},
        {input(), axes}, target.tensor);
  });
}

std::int32_t Exporter::add(const MaxPool& pool) {
  Window2d window = pool.window;
  if (window.rows.dilation * window.columns.dilation != 1)
    fail("tflite: ", who(), " is dilated, which TensorFlow Lite's pooling does not support");
  const std::int32_t image = bordered(window, 0);
  const std::int32_t output = graph_.add_tensor(out());
  add_pool(OperatorKind::MAX_POOL_2D, window, image, {.tensor = output});
  return output;
}

void Exporter::add_pool(OperatorKind kind, const Window2d& window, std::int32_t input, const TfliteTarget& target) {
  const auto& [rows, columns] = window;
  graph_.add_operator({.kind = kind,
                       .version = graph_.version(),
                       .options_type = Options::Pool2DOptions,
                       .options = CreatePool2DOptions(graph_.builder(), *tflite_padding(window), to_int(columns.stride),
                                                      to_int(rows.stride), to_int(columns.window), to_int(rows.window),
                                                      target.activation)
                                      .Union()},
                      {input}, target.tensor);
}

/// Adds the function's operator if its output has the grid for it. GATHER from the table is exact, on any grid.
std::int32_t Exporter::add(const Lookup& lookup) {
  const auto function = std::ranges::find(kTfliteFunctions, lookup.function, &TfliteFunction::name);
  if (function == kTfliteFunctions.end() || out().grid.bits != 8 || out().grid != function->grid.value_or(out().grid))
    return graph_.looked_up(input(), in().shape, lookup.table, out());
  return graph_.clamped(who(), out(), operation_->clamp, false, kByteMax, [&](const TfliteTarget& target) {
    graph_.add_operator({.kind = function->kind, .version = graph_.is_signed() ? function->int8_version : 1}, {input()},
                        target.tensor);
  });
}

std::int32_t Exporter::add(const Reshape&) {
  std::vector<std::int32_t> shape = tflite_shape(out().shape);
  shape[0] = -1;  // Whatever the batch is resized to.
  const std::int32_t extents = graph_.add_integers(part("shape"), {to_int(out().shape.rank() + 1)}, shape);
  const std::int32_t output = graph_.add_tensor(out());
  graph_.add_operator(
      {.kind = OperatorKind::RESHAPE,
       .options_type = Options::ReshapeOptions,
       .options = tflite_schema::CreateReshapeOptions(graph_.builder(), graph_.builder().CreateVector(shape)).Union()},
      {input(), extents}, output);
  return output;
}

}  // namespace

std::string tflite(const Model& model, const TfliteOptions& options) { return Exporter(model, options).run(); }

bool is_int8(const Model& model, const TfliteOptions& options) {
  return tflite_integers(model, options) != TfliteIntegers::kUInt8;
}

}  // namespace miniqat::exporters
