#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/attribute_json.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/source_ops.h"
#include "layers/layers.h"
#include "quantize/quantize.h"
#include "tests/fuzz/cases.h"

namespace miniqat::fuzz {
namespace {

using Json = nlohmann::ordered_json;
using Extents = std::vector<std::int64_t>;

/// Builds one case.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) { test_.seed = seed; }

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  std::int64_t any(std::initializer_list<std::int64_t> list) { return list.begin()[below(list.size())]; }
  /// Odd, prime and other extents up to `most`.
  std::int64_t extent(std::int64_t most) {
    const std::int64_t drawn = any({1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 23, 31, 32, 33, 64, 67});
    return drawn <= most ? drawn : 1 + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most)));
  }
  /// Half of them whole vectors, for which oneDNN has kernels of their own.
  std::int64_t channels() { return chance(2) ? any({8, 8, 16, 16, 24, 32, 48, 64}) : extent(67); }
  Extents extents(std::size_t rank, std::int64_t most) {
    Extents result(rank);
    for (std::int64_t& e : result) e = extent(most);
    return result;
  }
  Shape image() { return Shape({extent(5), extent(13), extent(13), extent(33)}); }
  Shape any_shape() { return Shape(std::span<const std::int64_t>(extents(below(5), 9))); }

  /// A fed tensor, at times computed from one, so that the plan may work in place; with numbers in [low, high].
  Output input(const Shape& shape, double low = -1, double high = 1) {
    const Output fed = placeholder(shape, low, high);
    if (chance(2)) return fed;
    const Output zero = layers::constant(graph(), fed.node->name() + "/zero", {}, {0});
    return layers::add(graph(), fed.node->name() + "/copy", fed, zero);
  }
  Output placeholder(const Shape& shape, double low, double high) {
    const Output output = layers::placeholder(graph(), concat("x", graph().size()), shape);
    test_.values[output.node->name()] = numbers(shape, low, high);
    return output;
  }
  Output variable(const Shape& shape, double low, double high, bool trainable = true) {
    const Output output = layers::variable(graph(), concat("v", graph().size()), shape, {}, trainable);
    test_.values[output.node->name()] = numbers(shape, low, high);
    return output;
  }
  Output weights(const Shape& shape) { return chance(2) ? variable(shape, -1, 1) : input(shape); }
  Output vector(std::int64_t size, double low = -1, double high = 1) { return variable({size}, low, high); }

  Node& op(const std::string& type, const std::vector<Output>& inputs, const Json& attributes = Json::object()) {
    std::unique_ptr<Op> made = make_op(type);
    attributes_from_json(*made, attributes);
    return graph().add(concat(type, graph().size()), std::move(made), inputs);
  }

  /// Ends the case: outputs of the node, or several of them, are differentiated.
  GraphCase finish(const Node& node) {
    std::vector<Output> outputs = {const_cast<Node&>(node).output()};
    for (int k = 1; k < static_cast<int>(node.output_specs().size()); ++k)
      if (!chance(3)) outputs.push_back(const_cast<Node&>(node).output(k));
    graph().set_outputs(outputs);
    test_.threads = 1 + static_cast<int>(below(8));
    test_.training = !chance(6);
    test_.fetches_all = chance(6);
    return std::move(test_);
  }

  Graph& graph() { return test_.graph; }
  GraphCase& test() { return test_; }

 private:
  Tensor numbers(const Shape& shape, double low, double high) {
    const Tensor tensor(shape);
    for (float& value : tensor.values<float>())
      value = random_.uniform(static_cast<float>(low), static_cast<float>(high));
    return tensor;
  }

  Random random_;
  GraphCase test_;
};

Json pair(std::int64_t a, std::int64_t b) { return Json::array({a, b}); }

Json window_attributes(Maker& make, bool dilates) {
  Json attributes = {{"padding", make.chance(2) ? "SAME" : "VALID"}};
  if (make.chance(2)) attributes["strides"] = pair(make.any({1, 1, 2, 3}), make.any({1, 2, 2, 3}));
  if (dilates && make.chance(4)) attributes["dilations"] = pair(make.any({1, 2, 3}), make.any({1, 2, 2}));
  return attributes;
}

/// How far a filter reaches over the image.
std::int64_t reach(const Json& attributes, std::size_t axis, std::int64_t window) {
  return 1 + (window - 1) * (attributes.contains("dilations") ? attributes["dilations"][axis].get<std::int64_t>() : 1);
}

Node& convolution(Maker& make, bool depthwise) {
  constexpr std::int64_t most_products = 600'000;
  for (;;) {
    const std::int64_t side = make.any({1, 1, 1, 3, 3, 5, 2});
    const std::array<std::int64_t, 2> window = {side, make.chance(4) ? make.any({1, 2, 3, 5, 7}) : side};
    Json attributes = window_attributes(make, true);
    const std::int64_t n = make.extent(make.chance(5) ? 32 : 6), h = make.extent(19), w = make.extent(19);
    const std::int64_t in = make.channels(), out = depthwise ? make.any({1, 1, 1, 2, 3}) : make.channels();
    const bool valid = attributes["padding"] == "VALID";
    if (valid && (h < reach(attributes, 0, window[0]) || w < reach(attributes, 1, window[1]))) continue;
    const std::int64_t stride = attributes.contains("strides") ? attributes["strides"][0].get<std::int64_t>() *
                                                                     attributes["strides"][1].get<std::int64_t>()
                                                               : 1;
    if (n * h * w * in * out * window[0] * window[1] / stride > most_products) continue;
    const Output x = make.input({n, h, w, in});
    return make.op(depthwise ? "DepthwiseConv2d" : "Conv2D", {x, make.weights({window[0], window[1], in, out})},
                   attributes);
  }
}

Node& pool(Maker& make, const std::string& type) {
  const Shape x = make.image();
  Json attributes = {{"padding", make.chance(2) ? "SAME" : "VALID"}};
  const auto fitting = [&](int axis) { return std::min(make.any({1, 2, 2, 3, 3, 5, 7}), x[axis]); };
  attributes["window"] = pair(fitting(1), fitting(2));
  if (make.chance(2)) attributes["strides"] = pair(make.any({1, 2, 3}), make.any({1, 2, 3}));
  return make.op(type, {make.input(x)}, attributes);
}

Node& matmul(Maker& make) {
  const std::int64_t m = make.extent(67), k = make.extent(67), n = make.extent(67);
  const bool a = make.chance(3), b = make.chance(3);
  return make.op("MatMul", {make.input(a ? Shape{k, m} : Shape{m, k}), make.weights(b ? Shape{n, k} : Shape{k, n})},
                 {{"transpose_a", a}, {"transpose_b", b}});
}

Node& batch_norm(Maker& make, Output x) {
  const std::int64_t c = x.shape().channels();
  Json attributes = {{"epsilon", make.chance(2) ? 1e-3 : 0.1}, {"decay", make.chance(2) ? 0.9 : 0.5}};
  attributes["is_training"] = !make.chance(4);
  if (make.chance(4)) {
    attributes["freeze_delay"] = 2;
    make.test().quantization_step = make.any({0, 1, 2});
  }
  return make.op(
      "BatchNorm",
      {x, make.vector(c, -2, 2), make.vector(c), make.variable({c}, -1, 1, false), make.variable({c}, 0.1, 2, false)},
      attributes);
}

Node& binary(Maker& make, const std::string& type) {
  const Shape shape = make.any_shape();
  // Either side may be stretched: axes of 1, or missing.
  const auto stretched = [&] {
    Extents extents = shape.to_vector();
    for (std::int64_t& e : extents)
      if (make.chance(3)) e = 1;
    if (!extents.empty() && make.chance(3))
      extents.erase(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(make.below(extents.size() + 1)));
    return Shape(std::span<const std::int64_t>(extents));
  };
  const Shape a = make.chance(2) ? shape : stretched();
  const Shape b = make.chance(2) ? shape : stretched();
  if (type == "Div") return make.op(type, {make.input(a), make.input(b, 0.4, 3)});
  return make.op(type, {make.input(a, -2, 2), make.input(b)});
}

Node& blocks(Maker& make, bool to_batch) {
  const std::int64_t h = make.any({1, 2, 3}), w = make.any({1, 2, 4});
  const Json block = Json::array({h, w});
  if (!to_batch) {
    const std::int64_t rows = make.extent(7), columns = make.extent(7);
    const auto crop = [&](std::int64_t extent) {
      const auto first = static_cast<std::int64_t>(make.below(static_cast<std::uint64_t>(extent)));
      return pair(first, static_cast<std::int64_t>(make.below(static_cast<std::uint64_t>(extent - first))));
    };
    return make.op("BatchToSpaceND", {make.input({h * w * make.extent(3), rows, columns, make.extent(17)})},
                   {{"block_shape", block}, {"crops", Json::array({crop(rows * h), crop(columns * w)})}});
  }
  const std::int64_t rows = make.extent(11), columns = make.extent(11);
  const auto padding = [&](std::int64_t extent, std::int64_t by) {
    const std::int64_t first = make.any({0, 1, 2});
    return pair(first, (by - (extent + first) % by) % by + by * make.any({0, 0, 1}));
  };
  return make.op("SpaceToBatchND", {make.input({make.extent(4), rows, columns, make.extent(17)})},
                 {{"block_shape", block}, {"paddings", Json::array({padding(rows, h), padding(columns, w)})}});
}

Node& fake_quant(Maker& make, Output x) {
  const std::uint64_t range = make.below(3);
  const bool per_channel = x.shape().rank() > 0 && make.chance(3);
  Json attributes = {{"bits", make.any({2, 3, 4, 5, 6, 7, 8, 8, 8, 16})},
                     {"narrow_range", make.chance(3)},
                     {"symmetric", make.chance(3)},
                     {"per_channel", per_channel},
                     {"range", range == 0   ? "fixed"
                               : range == 1 ? "last_value"
                                            : "moving_average"},
                     {"ema_decay", 0.9},
                     {"delay", make.any({0, 0, 0, 2})},
                     {"is_training", !make.chance(5)}};
  make.test().runs = range == 2 ? 2 : 1;
  const Shape shape = per_channel ? Shape{x.shape().channels()} : Shape{};
  return make.op("FakeQuant",
                 {x, make.variable(shape, -1.5, -0.1, range == 0), make.variable(shape, 0.1, 1.5, range == 0)},
                 attributes);
}

/// Ops that the plan may run as one (layers/chain.h).
Node& chain(Maker& make) {
  const Shape shape = make.chance(3) ? Shape{make.extent(33), make.extent(67)} : make.image();
  Output x = make.input(shape, -2, 2);
  const std::int64_t c = shape.channels();
  if (make.chance(4)) x = make.op("Mul", {x, make.vector(c, -1, 2)}).output();
  if (make.chance(3))
    x = batch_norm(make, x).output();
  else if (make.chance(2))
    x = make.op("BiasAdd", {x, make.vector(c)}).output();
  if (make.chance(4)) x = make.op("Add", {x, make.input(shape)}).output();
  if (!make.chance(3)) x = make.op(make.chance(3) ? "Relu6" : "Relu", {x}).output();
  if (make.chance(2)) x = fake_quant(make, x).output();
  if (shape.rank() == 4 && make.chance(2)) {
    const std::int64_t h = std::min(make.any({1, 2, 3}), shape[1]), w = std::min(make.any({2, 2, 3}), shape[2]);
    x = make.op("MaxPool", {x}, {{"window", pair(h, w)}}).output();
  }
  return make.op("Square", {x});
}

/// Vectors for the ops that fold batch norms.
std::vector<Output> vectors(Maker& make, std::initializer_list<std::pair<double, double>> ranges) {
  const std::int64_t c = make.extent(67);
  std::vector<Output> result;
  for (const auto& [low, high] : ranges)
    result.push_back(make.chance(2) ? make.variable({c}, low, high) : make.input({c}, low, high));
  return result;
}

Node& softmax_loss(Maker& make) {
  const std::int64_t rows = make.extent(33), classes = make.extent(31);
  const Output labels = layers::placeholder(make.graph(), "labels", {rows}, DType::kInt32);
  return make.op("SoftmaxCrossEntropy", {make.input({rows, classes}, -5, 5), labels});
}

Node& reshape(Maker& make) {
  const Shape x = make.any_shape();
  Extents to = x.to_vector();
  for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[make.below(i)]);
  if (!to.empty() && make.chance(2)) to[make.below(to.size())] = -1;
  return make.op("Reshape", {make.input(x)}, {{"shape", to}});
}

Node& concat_op(Maker& make) {
  const Extents shape = make.extents(1 + make.below(4), 9);
  const std::size_t axis = make.below(shape.size());
  std::vector<Output> parts;
  for (std::uint64_t k = 1 + make.below(4); k > 0; --k) {
    Extents part = shape;
    part[axis] = make.extent(17);
    parts.push_back(make.input(Shape(std::span<const std::int64_t>(part))));
  }
  return make.op("Concat", parts, {{"axis", axis}});
}

Node& pad(Maker& make) {
  const Shape x = make.any_shape();
  Json paddings = Json::array();
  for (int axis = 0; axis < x.rank(); ++axis) paddings.push_back(pair(make.any({0, 0, 1, 2}), make.any({0, 0, 1, 3})));
  return make.op("Pad", {make.input(x)}, {{"paddings", paddings}});
}

Node& mean(Maker& make) {
  // Large enough for the vectorised loop, at times.
  if (make.chance(3)) {
    const Shape x({8 * make.any({2, 3, 4}), make.extent(7), make.extent(7), make.any({33, 64, 65, 67, 79, 128})});
    return make.op("Mean", {make.input(x)}, {{"axes", pair(1, 2)}});
  }
  const Shape x = make.any_shape();
  Json axes = Json::array();
  for (int axis = 0; axis < x.rank(); ++axis)
    if (make.chance(2)) axes.push_back(axis);
  Json attributes = {{"keep_dims", make.chance(2)}};
  if (!axes.empty()) attributes["axes"] = axes;
  return make.op("Mean", {make.input(x)}, attributes);
}

Node& unary(Maker& make, const std::string& type) {
  const bool positive = type == "Rsqrt" || type == "Reciprocal";
  const Shape shape = make.chance(30)     ? Shape{static_cast<std::int64_t>(16380 + make.below(20000))}
                      : type == "Softmax" ? Shape{make.extent(33), make.extent(33)}
                                          : make.any_shape();
  return make.op(type, {make.input(shape, positive ? 0.2 : -7, 7)});
}

using Make = std::function<Node&(Maker&)>;

const std::map<std::string, Make>& makers() {
  static const std::map<std::string, Make> table = [] {
    std::map<std::string, Make> all;
    for (const char* type : {"Add", "Sub", "Mul", "Div"})
      all[type] = [type](Maker& make) -> Node& { return binary(make, type); };
    for (const char* type : {"Rsqrt", "Reciprocal", "Square", "Identity", "Relu", "Relu6", "Softmax"})
      all[type] = [type](Maker& make) -> Node& { return unary(make, type); };
    for (const char* type : {"MaxPool", "AvgPool"})
      all[type] = [type](Maker& make) -> Node& { return pool(make, type); };
    all["Conv2D"] = [](Maker& make) -> Node& { return convolution(make, false); };
    all["DepthwiseConv2d"] = [](Maker& make) -> Node& { return convolution(make, true); };
    all["MatMul"] = matmul;
    all["BatchNorm"] = [](Maker& make) -> Node& {
      const Shape shape = make.chance(3) ? Shape{make.extent(33), make.extent(67)} : make.image();
      return batch_norm(make, make.input(shape, -1, 2));
    };
    all["BiasAdd"] = [](Maker& make) -> Node& {
      const Shape shape = make.chance(3) ? Shape{make.extent(67), make.extent(67)} : make.image();
      return make.op("BiasAdd", {make.input(shape), make.vector(shape.channels())});
    };
    all["Dropout"] = [](Maker& make) -> Node& {
      return make.op("Dropout", {make.input(make.any_shape())}, {{"rate", make.chance(3) ? 0.0 : 0.3}});
    };
    all["SpaceToBatchND"] = [](Maker& make) -> Node& { return blocks(make, true); };
    all["BatchToSpaceND"] = [](Maker& make) -> Node& { return blocks(make, false); };
    all["FakeQuant"] = [](Maker& make) -> Node& { return fake_quant(make, make.input(make.any_shape(), -2, 2)); };
    all["BatchNormFold"] = [](Maker& make) -> Node& {
      return make.op("BatchNormFold", vectors(make, {{-2, 2}, {-1, 1}, {-1, 1}, {0.1, 2}}));
    };
    all["BatchNormCorrection"] = [](Maker& make) -> Node& {
      return make.op("BatchNormCorrection", vectors(make, {{-2, 2}, {-1, 1}, {0.1, 2}, {-1, 1}, {0.1, 2}}),
                     {{"freeze_delay", make.any({-1, 0, 2})}});
    };
    all["BatchNormScale"] = [](Maker& make) -> Node& {
      return make.op("BatchNormScale", vectors(make, {{0.1, 2}, {0.1, 2}}));
    };
    all["SoftmaxCrossEntropy"] = softmax_loss;
    all["Reshape"] = reshape;
    all["Concat"] = concat_op;
    all["Pad"] = pad;
    all["Mean"] = mean;
    return all;
  }();
  return table;
}

}  // namespace

GraphCase convolution_case(std::uint64_t seed) {
  Maker make(seed);
  Node& node = convolution(make, make.chance(3));
  return make.finish(node);
}

GraphCase op_case(std::uint64_t seed) {
  Maker make(seed);
  const auto& table = makers();
  const std::uint64_t choice = make.below(table.size() + 8);
  Node& node =
      choice < table.size() ? std::next(table.begin(), static_cast<std::ptrdiff_t>(choice))->second(make) : chain(make);
  return make.finish(node);
}

void require_all_ops() {
  for (const std::string& type : registered_ops())
    if (!makers().contains(type) && type != "Placeholder" && type != "Variable" && type != "Constant")
      fail("op_case makes no ", type);
}

}  // namespace miniqat::fuzz
