#include "exporters/onnx/onnx_float.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/text/error.h"
#include "exporters/onnx/graph.h"
#include "layers/layers.h"

namespace miniqat::exporters {
namespace {

constexpr std::int64_t kOpsetOfHardSwish = 14;
/// Since this opset ReduceMean takes its axes as an input. Nothing that is written here needs as much, so that a file
/// has the attribute unless a later opset is asked for.
constexpr std::int64_t kOpsetOfAxesAsInput = 18;

/// Translates node by node. A tensor of the graph is a tensor of the file: under its node's name, images [n, c, h, w].
class FloatTranslator {
 public:
  FloatTranslator(const Graph& graph, const NamedTensors& variables, const OnnxFloatOptions& options)
      : network_(graph), graph_(options.name, options.opset), parameters_(graph_, variables) {
    if (options.pictures) graph_.grid("input", *options.pictures);
    graph_.add(properties(options.class_names, options.task, options.input_standard, options.output_standard));
  }

  std::string run() {
    if (network_.outputs().empty()) fail("onnx-float: the graph names no outputs");
    find_needed();
    for (const Node* node : network_.topological_order())
      if (needed_.contains(node) && is_fed(*node) && !names_.contains(node)) translate(*node);
    add_outputs();
    return graph_.bytes();
  }

 private:
  using Translate = void (FloatTranslator::*)(const Node&);
  static const std::map<std::string_view, Translate>& table();

  template <class... Parts>
  [[noreturn]] static void refuse(const Node& node, const Parts&... parts) {
    fail("onnx-float: ", describe(node), " ", parts...);
  }

  void find_needed() {
    std::vector<const Node*> left;
    for (const Output& output : network_.outputs()) left.push_back(output.node);
    while (!left.empty()) {
      const Node* node = left.back();
      left.pop_back();
      if (!needed_.insert(node).second) continue;
      for (const Output& input : node->inputs()) left.push_back(input.node);
    }
  }

  /// Whether what is fed matters to it. What is computed of parameters alone is refused where it is read.
  bool is_fed(const Node& node) {
    const bool fed = node.as<Placeholder>() != nullptr ||
                     std::ranges::any_of(node.inputs(), [&](const Output& x) { return fed_.contains(x.node); });
    if (fed) fed_.insert(&node);
    return fed;
  }

  void translate(const Node& node) {
    const auto found = table().find(node.type());
    if (found == table().end()) refuse(node, "has no counterpart that this format writes");
    const Shape& shape = node.output().shape();
    if (node.as<Placeholder>() != nullptr && batch_ == 0 && shape.rank() > 0) batch_ = shape[0];
    if (shape.rank() == 0 || shape[0] != batch_)
      refuse(node, "gives ", shape, "; each tensor needs the batch of ", batch_, " as its first axis");
    (this->*found->second)(node);
  }

  // --- Tensors.

  const std::string& activation(const Node& node, int i = 0) const {
    const Output& x = node.input(i);
    if (!names_.contains(x.node))
      refuse(node, "takes ", describe(*x.node), " as its input ", i, ", which must depend on what is fed");
    // A batch norm's mean and variance.
    if (x.index != 0) refuse(node, "takes ", x.name(), ", which this format does not write");
    return names_.at(x.node);
  }
  const Output& parameter(const Node& node, int i) const {
    if (!is_parameter(node.input(i)))
      refuse(node, "takes weights that the network computes: ", describe(*node.input(i).node));
    return node.input(i);
  }
  void add(const Node& node, const std::string& type, const std::vector<std::string>& inputs,
           const std::vector<OnnxAttribute>& attributes = {}) {
    names_[&node] = graph_.node(type, inputs, node.name(), attributes);
  }

  // --- Inputs and outputs.

  void add_input(const Node& node) {
    if (node.output().spec().dtype != DType::kFloat32) refuse(node, "is no input of float32 numbers");
    names_[&node] = graph_.input(node.name(), pb::FLOAT, extents_in_file(node.output().shape()));
  }
  /// Without the batch.
  static std::vector<std::int64_t> extents_in_file(const Shape& shape) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(shape.rank()));
    for (int axis = 0; axis < shape.rank(); ++axis)
      extents[static_cast<std::size_t>(onnx_axis(shape.rank(), axis))] = shape[axis];
    return {extents.begin() + 1, extents.end()};
  }
  void add_outputs() {
    std::set<std::string> given;
    for (const Output& output : network_.outputs()) {
      const Node& node = *output.node;
      if (!names_.contains(&node) || output.index != 0) refuse(node, "is an output that this format does not write");
      std::string name = names_.at(&node);
      // An output is a tensor of its own.
      if (node.as<Placeholder>() != nullptr || !given.insert(name).second)
        name = graph_.node("Identity", {name}, concat(name, "/output"));
      graph_.output(name, pb::FLOAT, extents_in_file(output.shape()));
    }
  }

  // --- Layers.

  /// The bias that alone reads a layer, which then becomes a part of it; null if there is none.
  const Node* bias_behind(const Node& layer) const {
    const auto uses = layer.uses();
    if (uses.size() != 1 || network_.is_output(layer)) return nullptr;
    const Node* reader = uses[0].node;
    const bool fits = reader->as<layers::BiasAdd>() != nullptr && uses[0].input == 0 && is_parameter(reader->input(1));
    return fits && needed_.contains(reader) ? reader : nullptr;
  }
  void add_layer(const Node& node, const std::string& type, std::vector<std::string> inputs,
                 const std::vector<OnnxAttribute>& attributes) {
    const Node* bias = bias_behind(node);
    if (bias != nullptr) inputs.push_back(parameters_.plain(bias->input(1)));
    const std::string name = graph_.node(type, inputs, node.name(), attributes);
    names_[&node] = name;
    if (bias != nullptr) names_[bias] = name;
  }

  void add_conv2d(const Node& node) { add_convolution(node, *node.as<layers::Conv2d>(), false); }
  void add_depthwise(const Node& node) { add_convolution(node, *node.as<layers::DepthwiseConv2d>(), true); }
  void add_convolution(const Node& node, const layers::Conv2dAttributes& attributes, bool depthwise) {
    const Output& filter = parameter(node, 1);
    std::vector<OnnxAttribute> window =
        dilated_window_attributes(layers::window_of(node.input(0).shape(), filter.shape(), attributes));
    window.emplace_back("group", depthwise ? filter.shape()[2] : 1);
    const std::string weights = depthwise ? parameters_.depthwise_filter(filter) : parameters_.filter(filter);
    add_layer(node, "Conv", {activation(node), weights}, window);
  }

  void add_matmul(const Node& node) {
    const auto& attributes = *node.as<layers::MatMul>();
    if (attributes.transpose_a) refuse(node, "transposes its input, which is a batch");
    const std::string weights = parameters_.plain(parameter(node, 1));
    add_layer(node, "Gemm", {activation(node), weights}, {{"transB", attributes.transpose_b ? 1 : 0}});
  }

  void add_bias(const Node& node) {
    add(node, "Add", {activation(node), parameters_.operand(parameter(node, 1), node.output().shape().rank())});
  }

  void add_batch_norm(const Node& node) {
    const int rank = node.output().shape().rank();
    if (rank != 2 && rank != 4) refuse(node, "normalises a tensor of ", counted(rank, "axis"), ", not images or rows");
    const auto& attributes = *node.as<layers::BatchNorm>();
    std::vector<std::string> inputs = {activation(node)};
    for (int i = 1; i < 5; ++i) inputs.push_back(parameters_.plain(parameter(node, i)));
    add(node, "BatchNormalization", inputs,
        {{"epsilon", static_cast<float>(attributes.epsilon)}, {"momentum", static_cast<float>(attributes.decay)}});
  }

  // --- Functions.

  void add_same(const Node& node) { add(node, std::string(node.type()), {activation(node)}); }
  void add_hard_swish(const Node& node) {
    graph_.require(kOpsetOfHardSwish, concat("onnx-float: ", describe(node)));
    add_same(node);
  }
  void add_leaky_relu(const Node& node) {
    add(node, "LeakyRelu", {activation(node)}, {{"alpha", static_cast<float>(node.as<layers::LeakyRelu>()->alpha)}});
  }
  void add_hard_sigmoid(const Node& node) {
    const layers::HardSigmoidAttributes& attributes = *node.as<layers::HardSigmoid>();
    add(node, "HardSigmoid", {activation(node)},
        {{"alpha", static_cast<float>(attributes.alpha)}, {"beta", static_cast<float>(attributes.beta)}});
  }
  void add_relu6(const Node& node) { add_clip(node, 0, 6); }
  void add_clip(const Node& node) {
    const layers::ClipAttributes& bounds = *node.as<layers::Clip>();
    add_clip(node, static_cast<float>(bounds.low), static_cast<float>(bounds.high));
  }
  void add_clip(const Node& node, float low, float high) {
    const std::string& x = activation(node);
    add(node, "Clip",
        {x, graph_.scalar(node.name() + "/min", pb::FLOAT, low), graph_.scalar(node.name() + "/max", pb::FLOAT, high)});
  }
  void add_dropout(const Node& node) {
    const std::string& x = activation(node);
    const auto rate = static_cast<float>(node.as<layers::Dropout>()->rate);
    add(node, "Dropout", {x, graph_.scalar(node.name() + "/ratio", pb::FLOAT, rate)});
  }
  void add_softmax(const Node& node) {
    const int rank = node.output().shape().rank();
    add(node, "Softmax", {activation(node)}, {{"axis", onnx_axis(rank, rank - 1)}});
  }

  void add_arithmetic(const Node& node) {
    const int rank = node.output().shape().rank();
    std::vector<std::string> inputs;
    for (int i = 0; i < 2; ++i) {
      const Output& x = node.input(i);
      const bool known = is_parameter(x);
      const bool fits = known ? x.shape().rank() < rank || x.shape()[0] == 1 : x.shape().rank() == rank;
      if (!fits)
        refuse(node, "combines ", node.input(0).shape(), " and ", node.input(1).shape(),
               ", which do not meet axis by axis in ONNX's order");
      inputs.push_back(known ? parameters_.operand(x, rank) : activation(node, i));
    }
    add(node, std::string(node.type()), inputs);
  }

  // --- Windows and shapes.

  void add_max_pool(const Node& node) { add_pool(node, *node.as<layers::MaxPool>()); }
  void add_average_pool(const Node& node) { add_pool(node, *node.as<layers::AvgPool>()); }
  void add_pool(const Node& node, const layers::PoolAttributes& attributes) {
    const bool maximum = node.as<layers::MaxPool>() != nullptr;
    add(node, maximum ? "MaxPool" : "AveragePool", {activation(node)},
        window_attributes(layers::window_of(node.input(0).shape(), attributes)));
  }

  void add_mean(const Node& node) {
    const auto& [axes, keeps] = *node.as<layers::Mean>();
    const int rank = node.input(0).shape().rank();
    std::set<std::int64_t> ours;
    for (const std::int64_t axis : axes) ours.insert(axis < 0 ? axis + rank : axis);
    if (rank != 4 || ours != std::set<std::int64_t>{1, 2})
      refuse(node, "averages over other axes than height and width of images, which this format does not write");
    if (keeps) return add(node, "GlobalAveragePool", {activation(node)});
    const std::vector<std::int64_t> pixels = {2, 3};
    if (graph_.opset() < kOpsetOfAxesAsInput)
      return add(node, "ReduceMean", {activation(node)}, {{"axes", pixels}, {"keepdims", 0}});
    const std::string in_file = graph_.integers(node.name() + "/axes", pixels);
    add(node, "ReduceMean", {activation(node), in_file}, {{"keepdims", 0}});
  }

  /// miniqat's numbers of an image lie channels last.
  void add_reshape(const Node& node) {
    const Shape &from = node.input(0).shape(), &to = node.output().shape();
    std::string x = activation(node);
    if (lies_otherwise(from)) x = graph_.transpose(x, node.name() + "/channels_last", kToChannelsLast);
    // 0 keeps the extent that is there: the batch's size.
    std::vector<std::int64_t> extents = to.to_vector();
    extents[0] = 0;
    const bool turns = lies_otherwise(to);
    if (!turns && to.rank() == 4) extents = {0, to[3], to[1], to[2]};
    const std::string shape = graph_.integers(node.name() + "/shape", extents);
    if (!turns) return add(node, "Reshape", {x, shape});
    x = graph_.node("Reshape", {x, shape}, node.name() + "/reshaped");
    names_[&node] = graph_.transpose(x, node.name(), kToChannelsFirst);
  }
  /// Not so images of one pixel or one channel.
  static bool lies_otherwise(const Shape& shape) {
    return shape.rank() == 4 && shape[3] != 1 && shape[1] * shape[2] != 1;
  }

  void add_concat(const Node& node) {
    const int rank = node.output().shape().rank();
    const std::int64_t axis = node.as<layers::Concat>()->axis;
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) inputs.push_back(activation(node, static_cast<int>(i)));
    add(node, "Concat", inputs, {{"axis", onnx_axis(rank, axis < 0 ? axis + rank : axis)}});
  }

  void add_pad(const Node& node) {
    std::vector<std::string> inputs = {
        activation(node), graph_.integers(node.name() + "/paddings", onnx_pads(node.as<layers::Pad>()->paddings))};
    // ONNX Runtime makes a Pad of zeros a part of the MaxPool behind it, as pads, which count as minus infinity there
    // (PadFusion, 1.17 to 1.30). It looks for a value of all zero bits: -0 has the same effect and stays a Pad.
    if (!only_convolutions_read(node)) inputs.push_back(graph_.scalar(node.name() + "/zero", pb::FLOAT, -0.0f));
    add(node, "Pad", inputs);
  }
  /// For them the padding is theirs, too.
  bool only_convolutions_read(const Node& node) const {
    const auto convolves = [](const Use& use) {
      return use.node->as<layers::Conv2d>() != nullptr || use.node->as<layers::DepthwiseConv2d>() != nullptr;
    };
    return !network_.is_output(node) && std::ranges::all_of(node.uses(), convolves);
  }

  void add_slice(const Node& node) {
    const auto& [axes, starts, ends, steps] = *node.as<layers::Slice>();
    const int rank = node.output().shape().rank();
    std::vector<std::int64_t> onnx_axes;
    for (const std::int64_t axis : axes) onnx_axes.push_back(onnx_axis(rank, axis < 0 ? axis + rank : axis));
    const auto list = [&](std::string_view what, const std::vector<std::int64_t>& values) {
      return graph_.integers(concat(node.name(), "/", what), values);
    };
    std::vector<std::string> inputs = {activation(node), list("starts", starts), list("ends", ends),
                                       list("axes", onnx_axes)};
    if (!steps.empty()) inputs.push_back(list("steps", steps));
    add(node, "Slice", inputs);
  }

  const Graph& network_;
  OnnxGraph graph_;
  Parameters parameters_;
  std::int64_t batch_ = 0;
  std::set<const Node*> needed_, fed_;
  /// The name in the file of each node's first output.
  std::map<const Node*, std::string> names_;
};

const std::map<std::string_view, FloatTranslator::Translate>& FloatTranslator::table() {
  using T = FloatTranslator;
  static const std::map<std::string_view, Translate> kTable = {
      {Placeholder::kType, &T::add_input},
      {layers::Conv2d::kType, &T::add_conv2d},
      {layers::DepthwiseConv2d::kType, &T::add_depthwise},
      {layers::MatMul::kType, &T::add_matmul},
      {layers::BiasAdd::kType, &T::add_bias},
      {layers::BatchNorm::kType, &T::add_batch_norm},
      {layers::Relu::kType, &T::add_same},
      {layers::Sigmoid::kType, &T::add_same},
      {layers::HardSwish::kType, &T::add_hard_swish},
      {layers::Identity::kType, &T::add_same},
      {layers::LeakyRelu::kType, &T::add_leaky_relu},
      {layers::Relu6::kType, &T::add_relu6},
      {layers::Clip::kType, &T::add_clip},
      {layers::Dropout::kType, &T::add_dropout},
      {layers::Softmax::kType, &T::add_softmax},
      {layers::Add::kType, &T::add_arithmetic},
      {layers::Sub::kType, &T::add_arithmetic},
      {layers::Mul::kType, &T::add_arithmetic},
      {layers::Div::kType, &T::add_arithmetic},
      {layers::MaxPool::kType, &T::add_max_pool},
      {layers::AvgPool::kType, &T::add_average_pool},
      {layers::Mean::kType, &T::add_mean},
      {layers::Reshape::kType, &T::add_reshape},
      {layers::Concat::kType, &T::add_concat},
      {layers::Pad::kType, &T::add_pad},
      {layers::Slice::kType, &T::add_slice},
      {layers::HardSigmoid::kType, &T::add_hard_sigmoid},
  };
  return kTable;
}

}  // namespace

std::string onnx_float(const Graph& graph, const NamedTensors& variables, const OnnxFloatOptions& options) {
  return FloatTranslator(graph, variables, options).run();
}

}  // namespace miniqat::exporters
