#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/graph/attribute_json.h"
#include "core/graph/registry.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "layers/layers.h"
#include "tests/fuzz/cases.h"

namespace miniqat::fuzz {

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
  // One in so many is large: several threads share the work from twice core/threads/parallel.h's grain on.
  Shape image() {
    if (chance(10)) return Shape({8, 17, 19, any({13, 16, 17, 33})});
    return Shape({extent(5), extent(13), extent(13), extent(33)});
  }
  Shape rows() {
    if (chance(10)) return Shape({300 + extent(67), 110 + extent(33)});
    return Shape({extent(67), extent(67)});
  }
  Shape any_shape() {
    if (chance(8)) return Shape({33000 + 300 * extent(67)});
    if (chance(5)) return chance(2) ? image() : rows();
    return Shape(std::span<const std::int64_t>(extents(below(5), 9)));
  }

  /// A fed tensor, at times computed from one, so that the plan may work in place; with numbers in [low, high].
  Output input(const Shape& shape, double low = -1, double high = 1) {
    const Output fed = placeholder(shape, low, high);
    if (chance(2)) return fed;
    const Output zero = layers::constant(graph(), fed.node->name() + "/zero", {}, {0});
    return layers::add(graph(), fed.node->name() + "/copy", fed, zero);
  }
  Output placeholder(const Shape& shape, double low, double high) { return placeholder(numbers(shape, low, high)); }
  Output placeholder(const Tensor& values) {
    const Output output = layers::placeholder(graph(), concat("x", graph().size()), values.shape());
    test_.values[output.node->name()] = values;
    return output;
  }
  Output variable(const Shape& shape, double low, double high, bool trainable = true) {
    const Output output = layers::variable(graph(), concat("v", graph().size()), shape, {}, trainable);
    test_.values[output.node->name()] = numbers(shape, low, high);
    return output;
  }
  Output variable(const Tensor& values, bool trainable) {
    const Output output = variable(values.shape(), 0, 0, trainable);
    test_.values[output.node->name()] = values;
    return output;
  }
  Output weights(const Shape& shape) { return chance(2) ? variable(shape, -1, 1) : input(shape); }
  Output vector(std::int64_t size, double low = -1, double high = 1) { return variable({size}, low, high); }

  Node& op(const std::string& type, const std::vector<Output>& inputs, const Json& attributes = Json::object()) {
    std::shared_ptr<Op> made = make_op(type);
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
    Tensor tensor(shape);
    const std::span<float> values = tensor.values<float>();
    const auto kind = below(10);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double part = random_.uniform();
      // Parts of a tensor that lie apart; numbers that lie together, away from 0; equal ones.
      if (kind == 0) part = 0.9 * static_cast<double>(i) / static_cast<double>(values.size()) + 0.1 * part;
      if (kind == 1) part = 0.9 + 0.1 * part;
      if (kind == 2) part = std::floor(part * 5) / 4;
      values[i] = static_cast<float>(low + (high - low) * part);
    }
    return tensor;
  }

  Random random_;
  GraphCase test_;
};

inline Json pair(std::int64_t a, std::int64_t b) { return Json::array({a, b}); }

// Each adds an op, or several that the plan runs as one, on random attributes and shapes.

Node& convolution(Maker& make, bool depthwise);
Node& pool(Maker& make, const std::string& type);
Node& matmul(Maker& make);
/// Large enough for bytes, in some cases for gradients from bytes.
Node& large_matmul(Maker& make);
Node& batch_norm(Maker& make, Output x);
/// Of ranges that lie around 0, or on one side of it, or hold nothing else.
Node& fake_quant(Maker& make, Output x);
/// Of numbers that lie on ties between two integers, or on the grid, or beside either.
Node& fake_quant_on_ties(Maker& make);
/// Ops that the plan may run as one (layers/chain/chain.h).
Node& chain(Maker& make);

}  // namespace miniqat::fuzz
