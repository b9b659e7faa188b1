#include "exporters/onnx/onnx.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/text/error.h"
#include "exporters/onnx/graph.h"

namespace miniqat::exporters {
namespace {

using integer::Add;
using integer::AveragePool;
using integer::Clamp;
using integer::Concat;
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

/// With which the types INT4 and UINT4 came.
constexpr std::int64_t kOpsetOf4Bits = 21;

struct OnnxFunction {
  std::string_view name;
  std::int64_t opset;
};
/// Functions that are operators of ONNX by the same names, and since when.
constexpr auto kOnnxFunctions = std::to_array<OnnxFunction>({{"Sigmoid", 13}, {"HardSwish", 14}});

/// With the batch it has four axes.
bool is_image(const Shape& example) { return example.rank() == 3; }

/// The place of an example's axis in ONNX's tensor.
std::int64_t axis_of_example(const Shape& example, int axis) { return onnx_axis(example.rank() + 1, axis + 1); }

/// Translates operation by operation. A tensor of the model is a tensor of uint8 in the file, under the same name.
class Translator {
 public:
  Translator(const Model& model, const OnnxOptions& options)
      : model_(model), options_(options), graph_(model.name, options.opset), tensors_(model.tensors.size()) {}

  std::string run() {
    add_input();
    for (const Operation& operation : model_.operations)
      std::visit([&](const auto& action) { translate(operation, action); }, operation.action);
    add_output();
    return graph_.bytes();
  }

 private:
  struct Parameters {
    std::string scale;
    std::string zero_point;
  };

  void add_input() {
    const TensorInfo& info = model_.tensor(model_.input);
    std::string images = graph_.input(info.name, pb::UINT8, info.shape.extents());
    if (is_image(info.shape)) images = graph_.transpose(images, info.name + "/channels_first", kToChannelsFirst);
    tensors_[model_.input] = images;
    graph_.grid("input", info.grid);
  }

  void add_output() {
    const TensorInfo& info = model_.tensor(model_.output);
    std::string integers = tensors_[model_.output];
    if (is_image(info.shape)) integers = graph_.transpose(integers, info.name + "/channels_last", kToChannelsLast);
    const std::string logits = dequantize(integers, model_.output, "logits");
    graph_.output(logits, pb::FLOAT, info.shape.extents());
    graph_.grid("output", info.grid);
    graph_.add(properties(model_.class_names, model_.task, model_.input_standard, model_.output_standard));
  }

  const Parameters& parameters(int tensor) {
    auto [found, is_new] = parameters_.try_emplace(tensor);
    if (is_new) {
      const auto& [name, shape, grid] = model_.tensor(tensor);
      found->second.scale = graph_.scalar(name + "/scale", pb::FLOAT, grid.scale);
      found->second.zero_point =
          graph_.scalar(name + "/zero_point", pb::UINT8, static_cast<std::uint8_t>(grid.zero_point));
    }
    return found->second;
  }

  std::string dequantize(const std::string& integers, int tensor, const std::string& wish) {
    const auto& [scale, zero_point] = parameters(tensor);
    return graph_.node("DequantizeLinear", {integers, scale, zero_point}, wish);
  }
  /// Each operator gets nodes of its own that dequantize what it reads: what runtimes look for.
  std::string real_input(const Operation& operation, std::size_t i = 0) {
    const int tensor = operation.inputs[i];
    return dequantize(tensors_[tensor], tensor, concat(operation.name, "/input", i));
  }
  std::vector<std::string> real_inputs(const Operation& operation) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < operation.inputs.size(); ++i) names.push_back(real_input(operation, i));
    return names;
  }

  /// Quantizes an operator's result and clamps it.
  void finish(const Operation& operation, const std::string& real) {
    const std::string& name = model_.output_of(operation).name;
    const bool clips = operation.clamp != Clamp{.min = 0, .max = 255};
    quantize(operation, real, clips ? name + "/before_clamp" : name);
    if (clips) tensors_[operation.output] = clamp(tensors_[operation.output], operation.clamp, name);
  }
  void quantize(const Operation& operation, const std::string& real, const std::string& wish) {
    const auto& [scale, zero_point] = parameters(operation.output);
    tensors_[operation.output] = graph_.node("QuantizeLinear", {real, scale, zero_point}, wish);
  }
  std::string clamp(const std::string& integers, const Clamp& clamp, const std::string& wish) {
    return graph_.node("Clip",
                       {integers, graph_.scalar(wish + "/min", pb::UINT8, static_cast<std::uint8_t>(clamp.min)),
                        graph_.scalar(wish + "/max", pb::UINT8, static_cast<std::uint8_t>(clamp.max))},
                       wish);
  }

  template <class... Parts>
  [[noreturn]] void refuse(const Operation& operation, const Parts&... parts) const {
    fail(named(operation), " ", parts...);
  }
  static std::string named(const Operation& operation) {
    return concat("onnx: [", type_name(operation.action), " \"", operation.name, "\"]");
  }

  void require_read(const Operation& operation, const Window2d& window) const {
    for (const WindowAxis& axis : {window.rows, window.columns})
      if (unread(axis) >= axis.stride)
        refuse(operation, "leaves ", unread(axis),
               " rows or columns unread, which ONNX cannot express with strides of ", axis.stride);
  }
  std::vector<OnnxAttribute> dilated_window(const Operation& operation, const Window2d& window) const {
    require_read(operation, window);
    return dilated_window_attributes(window);
  }

  void translate(const Operation& operation, const Layer& layer) {
    const std::string& name = operation.name;
    std::vector<OnnxAttribute> attributes;
    if (layer.kind != LayerKind::kFullyConnected) {
      attributes = dilated_window(operation, layer.window);
      const bool depthwise = layer.kind == LayerKind::kDepthwiseConv2d;
      attributes.emplace_back("group", depthwise ? layer.filter[2] : 1);
    }
    const std::vector<std::string> inputs = {real_input(operation), real_weights(operation, layer),
                                             real_bias(operation, layer)};
    finish(operation,
           graph_.node(layer.kind == LayerKind::kFullyConnected ? "Gemm" : "Conv", inputs, name, attributes));
  }

  /// One number for all channels, or a list.
  std::string scales(const Layer& layer, const std::vector<float>& values, const std::string& wish) {
    return layer.per_channel() ? graph_.list<float>(wish, pb::FLOAT, values)
                               : graph_.scalar(wish, pb::FLOAT, values[0]);
  }

  /// Integers of 4 bits become units in 8 before anything else: runtimes do that once, when they load the file, and
  /// then have integer kernels for them, as they don't for 4 bits.
  std::string in_eight_bits(const std::string& packed, const Layer& layer, pb::ElementType type) {
    const std::string wide = graph_.node("Cast", {packed}, packed + "/wide", {{"to", pb::INT32}});
    const std::string unit = graph_.scalar<std::int32_t>(packed + "/unit", pb::INT32, 1 << layer.weight_shift());
    return graph_.node("Cast", {graph_.node("Mul", {wide, unit}, packed + "/units")}, packed + "/unpacked",
                       {{"to", type}});
  }

  std::string real_weights(const Operation& operation, const Layer& layer) {
    const OnnxWeights weights = onnx_weights(layer, options_.packed_4_bits);
    if (weights.packed())
      graph_.require(
          kOpsetOf4Bits,
          concat(
              named(operation), " has weights of ", layer.weight_bits,
              " bits, which 8-bit tensors hold in any opset (--8-bit-weights, packed_4_bits = False); a tensor of 4 bits"));
    const std::string name = operation.name + "/weights";
    std::vector<std::int64_t> grids;
    std::vector<OnnxAttribute> attributes;
    if (layer.per_channel()) {
      grids.push_back(layer.output_channels());
      attributes.emplace_back("axis", weights.channel_axis());
    }
    const std::string constant = graph_.constant(name, weights.type, weights.extents, weights.bytes);
    const std::string integers = weights.packed() ? in_eight_bits(constant, layer, weights.unpacked()) : constant;
    const std::string scale = scales(layer, layer.unit_scales(), name + "/scale");
    const std::string zero_points =
        graph_.constant(name + "/zero_point", weights.unpacked(), grids, weights.zero_points);
    return graph_.node("DequantizeLinear", {integers, scale, zero_points}, name + "/real", attributes);
  }

  std::string real_bias(const Operation& operation, const Layer& layer) {
    const std::string name = operation.name + "/bias";
    std::vector<float> bias_scales;
    for (const float scale : layer.unit_scales()) bias_scales.push_back(model_.input_of(operation).grid.scale * scale);
    std::vector<OnnxAttribute> attributes;
    if (layer.per_channel()) attributes.emplace_back("axis", std::int64_t{0});
    return graph_.node(
        "DequantizeLinear",
        {graph_.list<std::int32_t>(name, pb::INT32, layer.bias), scales(layer, bias_scales, name + "/scale")},
        name + "/real", attributes);
  }

  void translate(const Operation& operation, const Add&) {
    finish(operation, graph_.node("Add", real_inputs(operation), operation.name));
  }
  void translate(const Operation& operation, const Mul&) {
    finish(operation, graph_.node("Mul", real_inputs(operation), operation.name));
  }
  /// The clamp that changes nothing keeps runtimes from merging the two quantizations, which would round once instead
  /// of twice.
  void translate(const Operation& operation, const Rescale&) {
    const int tensor = operation.inputs[0];
    const std::string input = clamp(tensors_[tensor], {.min = 0, .max = 255}, operation.name + "/unmerged");
    finish(operation, dequantize(input, tensor, operation.name));
  }
  void translate(const Operation& operation, const Concat& concat) {
    const std::int64_t axis = axis_of_example(model_.output_of(operation).shape, concat.axis);
    finish(operation, graph_.node("Concat", real_inputs(operation), operation.name, {{"axis", axis}}));
  }

  void translate(const Operation& operation, const AveragePool& pool) {
    const bool global = pool.is_global();
    if (!global && (pool.window.rows.dilation != 1 || pool.window.columns.dilation != 1))
      refuse(operation, "is an average pool with dilation, for which ONNX Runtime has no integer kernel");
    if (!global) require_read(operation, pool.window);
    const std::string x = real_input(operation);
    finish(operation, global ? graph_.node("GlobalAveragePool", {x}, operation.name)
                             : graph_.node("AveragePool", {x}, operation.name, window_attributes(pool.window)));
    const TensorInfo& to = model_.output_of(operation);
    if (to.shape.rank() == 1)
      tensors_[operation.output] = reshape(tensors_[operation.output], to.name + "/flat", to.shape);
  }

  void translate(const Operation& operation, const MaxPool& pool) {
    quantize(operation,
             graph_.node("MaxPool", {real_input(operation)}, operation.name, dilated_window(operation, pool.window)),
             model_.output_of(operation).name);
  }

  std::string reshape(const std::string& x, const std::string& wish, const Shape& example) {
    // 0 keeps the extent that is there: the batch's size.
    std::vector<std::int64_t> extents = {0};
    extents.insert(extents.end(), example.extents().begin(), example.extents().end());
    return graph_.node("Reshape", {x, graph_.integers(wish + "/shape", extents)}, wish);
  }
  /// An image's integers lie in another order in ONNX.
  void translate(const Operation& operation, const Reshape&) {
    const TensorInfo& to = model_.output_of(operation);
    std::string x = tensors_[operation.inputs[0]];
    if (is_image(model_.input_of(operation).shape))
      x = graph_.transpose(x, operation.name + "/channels_last", kToChannelsLast);
    x = reshape(x, is_image(to.shape) ? operation.name : to.name, to.shape);
    if (is_image(to.shape)) x = graph_.transpose(x, to.name, kToChannelsFirst);
    tensors_[operation.output] = x;
  }

  void translate(const Operation& operation, const Pad& pad) {
    const TensorInfo& to = model_.output_of(operation);
    std::vector<std::array<std::int64_t, 2>> paddings = {{0, 0}};
    paddings.insert(paddings.end(), pad.paddings.begin(), pad.paddings.end());
    tensors_[operation.output] =
        graph_.node("Pad",
                    {tensors_[operation.inputs[0]], graph_.integers(operation.name + "/paddings", onnx_pads(paddings)),
                     parameters(operation.output).zero_point},
                    to.name);
  }

  void translate(const Operation& operation, const Slice& slice) {
    const TensorInfo& to = model_.output_of(operation);
    std::vector<std::int64_t> ends, axes;
    for (int axis = 0; axis < to.shape.rank(); ++axis) {
      axes.push_back(axis_of_example(to.shape, axis));
      ends.push_back(slice.starts[axis] + (to.shape[axis] - 1) * slice.steps[axis] + 1);
    }
    const auto list = [&](const char* what, const std::vector<std::int64_t>& values) {
      return graph_.integers(operation.name + what, values);
    };
    tensors_[operation.output] = graph_.node("Slice",
                                             {tensors_[operation.inputs[0]], list("/starts", slice.starts),
                                              list("/ends", ends), list("/axes", axes), list("/steps", slice.steps)},
                                             to.name);
  }

  /// A function by its operator, for which runtimes have tables of their own; any other, and one that the opset asked
  /// for does not have, picks the table's integers.
  void translate(const Operation& operation, const Lookup& lookup) {
    const auto function = std::ranges::find(kOnnxFunctions, lookup.function, &OnnxFunction::name);
    if (function != kOnnxFunctions.end() && graph_.may_hold(function->opset)) {
      graph_.require(function->opset, named(operation));
      return finish(operation, graph_.node(lookup.function, real_inputs(operation), operation.name));
    }
    const std::string wide =
        graph_.node("Cast", {tensors_[operation.inputs[0]]}, operation.name + "/indices", {{"to", pb::INT32}});
    const std::string table = graph_.list<std::uint8_t>(operation.name + "/table", pb::UINT8, std::span(lookup.table));
    tensors_[operation.output] = graph_.node("Gather", {table, wide}, model_.output_of(operation).name);
  }

  const Model& model_;
  OnnxOptions options_;
  OnnxGraph graph_;
  /// For each of the model's indices, the name of the tensor of uint8, images [n, c, h, w].
  std::vector<std::string> tensors_;
  std::map<int, Parameters> parameters_;
};

}  // namespace

std::string onnx(const Model& model, const OnnxOptions& options) {
  model.check();
  return Translator(model, options).run();
}

}  // namespace miniqat::exporters
