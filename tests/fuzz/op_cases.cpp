#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "tests/fuzz/maker.h"
#include "tests/op_samples.h"

namespace miniqat::fuzz {
namespace {

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

/// Along one axis; without paddings, at times.
Node& blocks_of_rows(Maker& make, bool to_batch) {
  const std::int64_t block = make.any({1, 2, 3, 4}), n = make.extent(7), rows = make.extent(13);
  Json attributes = {{"block_shape", Json::array({block})}};
  if (!to_batch) {
    if (make.chance(2) && rows * block > 2) attributes["crops"] = Json::array({pair(1, make.any({0, 1}))});
    return make.op("BatchToSpaceND", {make.input({block * n, rows, make.extent(33)})}, attributes);
  }
  const bool pads = make.chance(2);
  if (pads) attributes["paddings"] = Json::array({pair(1, block - 1)});
  return make.op("SpaceToBatchND", {make.input({n, rows * block, make.extent(33)})}, attributes);
}

Node& blocks(Maker& make, bool to_batch) {
  if (make.chance(4)) return blocks_of_rows(make, to_batch);
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

double epsilon(Maker& make) { return make.chance(2) ? 1e-3 : 0.1; }

/// Vectors for the ops that fold batch norms.
std::vector<Output> vectors(Maker& make, std::initializer_list<std::pair<double, double>> ranges) {
  const std::int64_t c = make.extent(67);
  std::vector<Output> result;
  for (const auto& [low, high] : ranges)
    result.push_back(make.chance(2) ? make.variable({c}, low, high) : make.input({c}, low, high));
  return result;
}

Node& softmax_loss(Maker& make) {
  const bool large = make.chance(6);
  const std::int64_t rows = make.extent(67) * (large ? 7 : 1), classes = make.extent(67) + (large ? 40 : 0);
  const Output labels = layers::placeholder(make.graph(), "labels", {rows}, DType::kInt32);
  const Output logits = make.input({rows, classes}, -5, 5);
  Json attributes = {{"label_smoothing", make.chance(3) ? std::array{0.05, 0.1, 0.5}[make.below(3)] : 0}};
  if (make.chance(3))
    for (std::int64_t c = 0; c < classes; ++c)
      attributes["class_weights"].push_back(c == 0 ? 1 : std::array{0.0, 0.5, 1.0, 4.0}[make.below(4)]);
  return make.op("SoftmaxCrossEntropy", {logits, labels}, attributes);
}

Node& number_loss(Maker& make, const std::string& type) {
  Shape shape = make.any_shape();
  if (shape.rank() == 0 || shape.elements() == 0) shape = make.rows();
  Json attributes = Json::object();
  if (type == "Huber" && make.chance(2)) attributes["delta"] = std::array{0.1, 0.5, 2.0, 50.0}[make.below(4)];
  return make.op(type, {make.input(shape, -5, 5), make.input(shape, -5, 5)}, attributes);
}

/// The targets are fed as they are: further runs make up others by what the loss takes.
Node& sigmoid_loss(Maker& make) {
  const Shape shape = make.rows();
  return make.op("SigmoidCrossEntropy", {make.input(shape, -8, 8), make.placeholder(shape, 0, 1)});
}

Node& reshape(Maker& make) {
  const Shape x = make.any_shape();
  Extents to = x.to_vector();
  for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[make.below(i)]);
  if (!to.empty() && make.chance(2)) to[make.below(to.size())] = -1;
  return make.op("Reshape", {make.input(x)}, {{"shape", to}});
}

Node& concat_op(Maker& make) {
  const Extents shape = make.extents(1 + make.below(4), make.chance(6) ? 19 : 9);
  const std::size_t axis = make.below(shape.size());
  std::vector<Output> parts;
  for (std::uint64_t k = 1 + make.below(4); k > 0; --k) {
    Extents part = shape;
    part[axis] = make.extent(17);
    parts.push_back(make.input(Shape(std::span<const std::int64_t>(part))));
  }
  const auto from_behind = static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(shape.size());
  return make.op("Concat", parts, {{"axis", make.chance(3) ? from_behind : static_cast<std::int64_t>(axis)}});
}

Node& pad(Maker& make) {
  const Shape x = make.any_shape();
  Json paddings = Json::array();
  for (int axis = 0; axis < x.rank(); ++axis) paddings.push_back(pair(make.any({0, 0, 1, 2}), make.any({0, 0, 1, 3})));
  return make.op("Pad", {make.input(x)}, {{"paddings", paddings}});
}

Node& slice(Maker& make) {
  const Shape x = make.any_shape();
  Json axes = Json::array(), starts = axes, ends = axes, steps = axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (make.chance(2) || x[axis] == 0) continue;
    const auto start = static_cast<std::int64_t>(make.below(static_cast<std::uint64_t>(x[axis])));
    axes.push_back(make.chance(3) ? axis - x.rank() : axis);
    starts.push_back(start);
    ends.push_back(start + 1 + static_cast<std::int64_t>(make.below(static_cast<std::uint64_t>(x[axis] - start))));
    steps.push_back(make.any({1, 1, 2, 3}));
  }
  Json attributes = {{"axes", axes}, {"starts", starts}, {"ends", ends}};
  if (make.chance(2)) attributes["steps"] = steps;
  return make.op("Slice", {make.input(x)}, attributes);
}

Node& mean(Maker& make) {
  // Large enough for the vectorised loop, at times.
  if (make.chance(2)) {
    const Shape x({8 * make.any({2, 3, 4}), make.extent(7), make.any({1, 3, 7, 13}),
                   make.any({17, 33, 64, 64, 65, 67, 79, 128})});
    return make.op("Mean", {make.input(x)}, {{"axes", pair(1, 2)}, {"keep_dims", make.chance(2)}});
  }
  const Shape x = make.any_shape();
  Json axes = Json::array();
  for (int axis = 0; axis < x.rank(); ++axis)
    if (make.chance(2)) axes.push_back(make.chance(3) ? axis - x.rank() : axis);
  Json attributes = {{"keep_dims", make.chance(2)}};
  if (!axes.empty()) attributes["axes"] = axes;
  return make.op("Mean", {make.input(x)}, attributes);
}

Node& unary(Maker& make, const std::string& type) {
  const bool positive = type == "Rsqrt" || type == "Reciprocal";
  Shape shape = make.any_shape();
  // (Its reference takes the square of a row.)
  if (type == "Softmax" && (shape.rank() == 0 || shape.channels() > 400 || make.chance(2))) shape = make.rows();
  return make.op(type, {make.input(shape, positive ? 0.2 : -7, 7)});
}

Node& leaky_relu(Maker& make) {
  return make.op("LeakyRelu", {make.input(make.any_shape(), -7, 7)},
                 {{"alpha", std::array{0.0, 0.01, 0.1, 0.2, 1.5}[make.below(5)]}});
}

Node& clip(Maker& make) {
  const double low = std::array{-6.5, -1.0, 0.0, 0.5}[make.below(4)];
  return make.op("Clip", {make.input(make.any_shape(), -7, 7)},
                 {{"low", low}, {"high", low + std::array{0.25, 1.0, 6.0}[make.below(3)]}});
}

Node& hard_sigmoid(Maker& make) {
  return make.op("HardSigmoid", {make.input(make.any_shape(), -7, 7)},
                 {{"alpha", std::array{1.0 / 6, 0.2, 0.5, -0.3}[make.below(4)]},
                  {"beta", std::array{0.5, 0.0, 0.9}[make.below(3)]}});
}

using Make = std::function<Node&(Maker&)>;

void add_losses(std::map<std::string, Make>& all) {
  all["SoftmaxCrossEntropy"] = softmax_loss;
  all["SigmoidCrossEntropy"] = sigmoid_loss;
  for (const char* type : {"MeanSquaredError", "Huber"})
    all[type] = [type](Maker& make) -> Node& { return number_loss(make, type); };
}

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
      const Shape shape = make.chance(3) ? make.rows() : make.image();
      return batch_norm(make, make.input(shape, -1, 2));
    };
    all["BiasAdd"] = [](Maker& make) -> Node& {
      const Shape shape = make.chance(3) ? make.rows() : make.image();
      return make.op("BiasAdd", {make.input(shape), make.vector(shape.channels())});
    };
    all["Dropout"] = [](Maker& make) -> Node& {
      return make.op("Dropout", {make.input(make.any_shape())},
                     {{"rate", std::array{0.0, 0.1, 0.3, 0.5, 0.9}[make.below(5)]}});
    };
    all["LeakyRelu"] = leaky_relu;
    all["Clip"] = clip;
    all["HardSigmoid"] = hard_sigmoid;
    all["SpaceToBatchND"] = [](Maker& make) -> Node& { return blocks(make, true); };
    all["BatchToSpaceND"] = [](Maker& make) -> Node& { return blocks(make, false); };
    all["FakeQuant"] = [](Maker& make) -> Node& {
      return make.chance(3) ? fake_quant_on_ties(make) : fake_quant(make, make.input(make.any_shape(), -2, 2));
    };
    all["BatchNormFold"] = [](Maker& make) -> Node& {
      return make.op("BatchNormFold", vectors(make, {{-2, 2}, {-1, 1}, {-1, 1}, {0.1, 2}}),
                     {{"epsilon", epsilon(make)}});
    };
    all["BatchNormCorrection"] = [](Maker& make) -> Node& {
      make.test().quantization_step = make.any({0, 1, 2});
      return make.op("BatchNormCorrection", vectors(make, {{-2, 2}, {-1, 1}, {0.1, 2}, {-1, 1}, {0.1, 2}}),
                     {{"epsilon", epsilon(make)}, {"freeze_delay", make.any({-1, 0, 2})}});
    };
    all["BatchNormScale"] = [](Maker& make) -> Node& {
      // Gammas on either side of the floor.
      return make.op("BatchNormScale", vectors(make, {{-2, 2}, {0.1, 2}}),
                     {{"epsilon", epsilon(make)}, {"floor", make.chance(2) ? 1e-3 : 0.5}});
    };
    add_losses(all);
    all["Reshape"] = reshape;
    all["Concat"] = concat_op;
    all["Pad"] = pad;
    all["Slice"] = slice;
    all["Mean"] = mean;
    for (const testing::UnaryType& other : testing::unary_types())
      all.try_emplace(other.type, [other](Maker& make) -> Node& {
        return make.op(other.type, {make.input(make.any_shape(), other.low, other.high)});
      });
    return all;
  }();
  return table;
}

constexpr const char* kChain = "chain";

/// The case's op, or kChain. Each draws a lot, ops with loops of many kinds three and chains several; the highest
/// wins: so a new op takes some cases over and leaves the others as they were. (Convolutions have a stage.)
std::string drawn_op(std::uint64_t seed) {
  std::map<std::string, int> lots = {{kChain, 7}};
  for (const auto& [type, make] : makers()) lots[type] = 1;
  for (const char* type : {"MaxPool", "AvgPool", "Mean", "FakeQuant", "Dropout", "SoftmaxCrossEntropy", "BatchNorm"})
    lots[type] = 3;
  std::pair<std::uint64_t, std::string> best;
  for (const auto& [name, count] : lots)
    for (int lot = 0; lot < count; ++lot) best = std::max(best, {mix(seed, hash_text(concat(name, lot))), name});
  return best.second;
}

}  // namespace

GraphCase convolution_case(std::uint64_t seed) {
  Maker make(seed);
  const bool is_product = mix(seed, hash_text("product")) % 16 == 0;
  Node& node = is_product ? large_matmul(make) : convolution(make, make.chance(3));
  return make.finish(node);
}

GraphCase op_case(std::uint64_t seed) {
  Maker make(seed);
  const std::string op = drawn_op(seed);
  Node& node = op == kChain ? chain(make) : makers().at(op)(make);
  return make.finish(node);
}

void require_all_ops() {
  for (const std::string& type : registered_ops())
    if (!makers().contains(type) && type != "Placeholder" && type != "Variable" && type != "Constant")
      fail("op_case makes no ", type);
}

}  // namespace miniqat::fuzz
