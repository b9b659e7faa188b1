#include "exporters/onnx/graph.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "core/graph/source_ops.h"
#include "core/tensors/tensor.h"
#include "core/text/error.h"
#include "exporters/onnx/opsets.h"

namespace miniqat::exporters {
namespace {

static_assert(std::endian::native == std::endian::little, "constants are written as they lie in memory");

/// The version of the file's messages that the first release of ONNX with this opset has. A runtime reads no file of a
/// later version than its own.
constexpr std::int64_t ir_version_of(std::int64_t opset) {
  return opset < 15 ? 7 : opset < 19 ? 8 : opset < 21 ? 9 : 10;
}

void describe(pb::Value& value, const std::string& name, pb::ElementType type, std::span<const std::int64_t> extents) {
  value.set_name(name);
  pb::TensorType& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t extent : extents) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

Tensor value_of(const Node& node, const NamedTensors& variables) {
  if (const auto* constant = node.as<Constant>()) {
    Tensor tensor(node.output().shape());
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      tensor.data<float>()[i] =
          static_cast<float>(constant->value[constant->value.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
    return tensor;
  }
  const auto found = variables.find(node.name());
  if (found == variables.end()) fail("onnx-float: ", describe(node), " has no value");
  if (found->second.shape() != node.output().shape())
    fail("onnx-float: ", describe(node), " is ", node.output().shape(), ", its value ", found->second.shape());
  return found->second;
}

/// Axis i of the result is axis axes[i] of `tensor`.
std::vector<float> transposed(const Tensor& tensor, const std::vector<std::int64_t>& axes) {
  const std::vector<std::int64_t> extents = tensor.shape().to_vector();
  const std::size_t rank = extents.size();
  std::vector<std::int64_t> strides(rank, 1);
  for (std::size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t place = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto from = static_cast<std::size_t>(axes[axis]);
      place += rest % extents[from] * strides[from];
      rest /= extents[from];
    }
    values[i] = tensor.data<float>()[place];
  }
  return values;
}

/// A parameter's name in the file: "conv1.gamma" for "conv1/BatchNorm/gamma", whose last two parts the importer makes.
std::string onnx_name(std::string name) {
  const std::string norm = "/BatchNorm/";
  if (const std::size_t place = name.rfind(norm); place != std::string::npos && place > 0)
    name.replace(place, norm.size(), "/");
  std::ranges::replace(name, '/', '.');
  return name;
}

using integer::Layer;
using integer::LayerKind;

std::vector<std::int64_t> extents_of(const Layer& layer) {
  const Shape& filter = layer.filter;
  switch (layer.kind) {
    case LayerKind::kFullyConnected:
      return {filter[0], filter[1]};
    case LayerKind::kConv2d:
      return {filter[3], filter[2], filter[0], filter[1]};
    default:
      return {layer.output_channels(), 1, filter[0], filter[1]};
  }
}

/// In steps of the weights' grid or in units, less their zero points, and from miniqat's order, output channels last,
/// to ONNX's.
std::vector<std::int32_t> centred(const Layer& layer, bool in_units) {
  const bool connected = layer.kind == LayerKind::kFullyConnected;
  const std::int64_t out = layer.output_channels();
  const std::int64_t fan = layer.kind == LayerKind::kDepthwiseConv2d ? 1 : layer.filter[connected ? 0 : 2];
  const std::int64_t taps = connected ? 1 : layer.filter[0] * layer.filter[1];
  std::vector<std::int32_t> values(layer.weights.size());
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t i = 0; i < fan; ++i)
      for (std::int64_t o = 0; o < out; ++o) {
        const std::int64_t from = (tap * fan + i) * out + o;
        values[connected ? from : (o * fan + i) * taps + tap] =
            in_units ? layer.weight_units(from) : layer.weights[from] - layer.weight_zero_point(o);
      }
  return values;
}

/// In two's complement where there are negative ones.
std::string bytes_of(const std::vector<std::int32_t>& values, bool packed) {
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t value : values) bytes.push_back(static_cast<std::uint8_t>(packed ? value & 15 : value & 255));
  if (packed) bytes = integer::pack(bytes, 4);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

OnnxGraph::OnnxGraph(const std::string& name, std::optional<std::int64_t> opset) : asked_(opset) {
  if (opset && (*opset < kOldestOpset || *opset > kNewestOpset))
    fail("opset ", *opset, " cannot be written; ", kOldestOpset, " to ", kNewestOpset, " can");
  model_.add_opset_import();
  set_opset(opset.value_or(kOldestOpset));
  model_.set_producer_name("miniqat");
  model_.mutable_graph()->set_name(name);
}

void OnnxGraph::set_opset(std::int64_t opset) {
  model_.set_ir_version(ir_version_of(opset));
  model_.mutable_opset_import(0)->set_version(opset);
}

void OnnxGraph::require(std::int64_t opset, const std::string& what) {
  if (!may_hold(opset)) fail(what, " takes opset ", opset, ", and opset ", *asked_, " is asked for");
  set_opset(std::max(opset, this->opset()));
}

std::string OnnxGraph::unique(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; name.empty() || !names_.insert(name).second; ++i) name = concat(wish, "_", i);
  return name;
}

std::string OnnxGraph::input(const std::string& wish, pb::ElementType type, std::span<const std::int64_t> extents) {
  std::string name = unique(wish);
  describe(*model_.mutable_graph()->add_input(), name, type, extents);
  return name;
}

void OnnxGraph::output(const std::string& name, pb::ElementType type, std::span<const std::int64_t> extents) {
  describe(*model_.mutable_graph()->add_output(), name, type, extents);
}

std::string OnnxGraph::constant(const std::string& wish, pb::ElementType type, std::span<const std::int64_t> extents,
                                std::string bytes) {
  pb::Constant& constant = *model_.mutable_graph()->add_initializer();
  constant.set_name(unique(wish));
  constant.set_data_type(type);
  for (const std::int64_t extent : extents) constant.add_dims(extent);
  constant.set_raw_data(std::move(bytes));
  return constant.name();
}

std::string OnnxGraph::node(const std::string& type, const std::vector<std::string>& inputs, const std::string& wish,
                            const std::vector<OnnxAttribute>& attributes) {
  pb::Node& node = *model_.mutable_graph()->add_node();
  std::string output = unique(wish);
  node.set_op_type(type);
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const auto& [name, value] : attributes) {
    pb::Attribute& attribute = *node.add_attribute();
    attribute.set_name(name);
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      attribute.set_type(pb::Attribute::INT);
      attribute.set_i(*number);
    } else if (const auto* real = std::get_if<float>(&value)) {
      attribute.set_type(pb::Attribute::FLOAT);
      attribute.set_f(*real);
    } else {
      attribute.set_type(pb::Attribute::INTS);
      for (const std::int64_t i : std::get<std::vector<std::int64_t>>(value)) attribute.add_ints(i);
    }
  }
  return output;
}

void OnnxGraph::property(const std::string& key, const std::string& value) {
  pb::Property& property = *model_.add_metadata_props();
  property.set_key(key);
  property.set_value(value);
}

void OnnxGraph::grid(const std::string& tensor, const integer::Grid& grid) {
  char buffer[32];
  property(tensor + "_scale", {buffer, std::to_chars(buffer, buffer + sizeof buffer, grid.scale).ptr});
  property(tensor + "_zero_point", std::to_string(grid.zero_point));
}

void OnnxGraph::add(const Properties& properties) {
  for (const auto& [key, value] : properties) property(key, value);
}

std::string OnnxGraph::bytes(std::size_t most) const {
  // protobuf makes an empty text of more.
  if (model_.ByteSizeLong() > most) fail("onnx: the network does not fit: an ONNX file ends at 2 GiB");
  return model_.SerializeAsString();
}

std::int64_t onnx_axis(int rank, std::int64_t axis) {
  if (rank != 4 || axis == 0) return axis;
  return axis == 3 ? 1 : axis + 1;
}

std::vector<std::int64_t> onnx_pads(const std::vector<std::array<std::int64_t, 2>>& paddings) {
  const auto rank = static_cast<int>(paddings.size());
  std::vector<std::int64_t> pads(2 * paddings.size());
  for (int axis = 0; axis < rank; ++axis) {
    const auto place = static_cast<std::size_t>(onnx_axis(rank, axis));
    pads[place] = paddings[static_cast<std::size_t>(axis)][0];
    pads[paddings.size() + place] = paddings[static_cast<std::size_t>(axis)][1];
  }
  return pads;
}

std::int64_t unread(const WindowAxis& axis) { return axis.input - 1 - axis.source(axis.output - 1, axis.window - 1); }

std::vector<OnnxAttribute> window_attributes(const Window2d& window) {
  std::vector<std::int64_t> kernel, strides, before, after;
  for (const WindowAxis& axis : {window.rows, window.columns}) {
    kernel.push_back(axis.window);
    strides.push_back(axis.stride);
    before.push_back(axis.pad_before);
    after.push_back(std::max<std::int64_t>(-unread(axis), 0));
  }
  return {
      {"kernel_shape", kernel}, {"strides", strides}, {"pads", std::vector{before[0], before[1], after[0], after[1]}}};
}

std::vector<OnnxAttribute> dilated_window_attributes(const Window2d& window) {
  std::vector<OnnxAttribute> attributes = window_attributes(window);
  attributes.emplace_back("dilations", std::vector{window.rows.dilation, window.columns.dilation});
  return attributes;
}

bool is_parameter(const Output& tensor) {
  return tensor.node->as<Variable>() != nullptr || tensor.node->as<Constant>() != nullptr;
}

std::string Parameters::written(const Output& tensor, const std::string& form, const std::vector<std::int64_t>& axes,
                                std::vector<std::int64_t> extents) {
  std::string& name = names_[{tensor.node, form}];
  if (!name.empty()) return name;
  const Tensor value = value_of(*tensor.node, variables_);
  const std::vector<std::int64_t> ours = value.shape().to_vector();
  if (extents.empty()) {
    for (const std::int64_t axis : axes) extents.push_back(ours[static_cast<std::size_t>(axis)]);
    if (axes.empty()) extents = ours;
  }
  const std::vector<float> turned = axes.empty() ? std::vector<float>() : transposed(value, axes);
  const std::span<const float> numbers = axes.empty() ? value.values<float>() : std::span<const float>(turned);
  name = graph_.constant(onnx_name(tensor.node->name()), pb::FLOAT, extents, OnnxGraph::bytes_of(numbers));
  return name;
}

std::string Parameters::depthwise_filter(const Output& tensor) {
  const Shape& shape = tensor.shape();
  return written(tensor, "depthwise", {2, 3, 0, 1}, {shape[2] * shape[3], 1, shape[0], shape[1]});
}

std::string Parameters::operand(const Output& tensor, int rank) {
  const Shape& shape = tensor.shape();
  if (rank != 4 || shape.elements() == 1) return plain(tensor);
  // Filled up from the left, as broadcasting does.
  std::vector<std::int64_t> whole(4 - static_cast<std::size_t>(shape.rank()), 1);
  whole.insert(whole.end(), shape.extents().begin(), shape.extents().end());
  std::vector<std::int64_t> axes;
  if (shape.rank() == 4) axes = kToChannelsFirst;
  // Without the batch, [h, w, c]; [w, c] and [c] have their axes in order once c comes before w.
  if (shape.rank() == 3) axes = {2, 0, 1};
  if (shape.rank() == 2) axes = {1, 0};
  return written(tensor, "operand", axes, {whole[0], whole[3], whole[1], whole[2]});
}

OnnxWeights onnx_weights(const Layer& layer, bool packed_4_bits) {
  const bool packed = packed_4_bits && layer.weight_bits <= 4;
  std::vector<std::int32_t> values = centred(layer, !packed), zero_points(layer.weight_zero_points.size());
  const std::int32_t limit = packed ? 8 : 128;
  const auto fits = [limit](std::int32_t value) { return value >= -limit && value < limit; };
  const bool is_signed = std::ranges::all_of(values, fits);
  if (!is_signed) {
    const std::int64_t out = layer.output_channels();
    const auto count = static_cast<std::int64_t>(values.size());
    const std::int64_t run = layer.kind == LayerKind::kFullyConnected ? 1 : count / out;
    for (std::int64_t i = 0; i < count; ++i) values[i] += layer.weight_zero_point(i / run % out);
    for (std::size_t i = 0; i < zero_points.size(); ++i)
      zero_points[i] = layer.weight_zero_points[i] << layer.weight_shift();
  }
  return {.type = packed ? (is_signed ? pb::INT4 : pb::UINT4) : (is_signed ? pb::INT8 : pb::UINT8),
          .extents = extents_of(layer),
          .bytes = bytes_of(values, packed),
          .zero_points = bytes_of(zero_points, false)};
}

}  // namespace miniqat::exporters
