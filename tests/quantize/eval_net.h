#pragma once

#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "integer/reference/engine.h"
#include "layers/layers.h"
#include "quantize/affine.h"
#include "quantize/convert/convert.h"
#include "quantize/fake_quant.h"
#include "tests/errors.h"
#include "tests/quantize/convert/integer_check.h"

namespace miniqat::testing {

/// An evaluation graph made by hand, quantizer by quantizer, with the values of its variables.
struct EvalNet {
  Graph graph;
  NamedTensors variables;
  integer::Grid input = {.scale = 1.0f / 32, .zero_point = 100, .bits = 8};

  Output images(const Shape& shape = {2, 6, 6, 3}) { return layers::placeholder(graph, "images", shape); }

  Output variable(const std::string& name, const Shape& shape, std::vector<float> values) {
    variables[name] = Tensor::from(shape, values);
    return layers::variable(graph, name, shape);
  }
  /// Random numbers in +-1.
  Output variable(const std::string& name, const Shape& shape) {
    miniqat::Random random(hash_text(name));
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = static_cast<float>(2 * random.uniform() - 1);
    return variable(name, shape, values);
  }

  static quantize::FakeQuantAttributes evaluating() {
    return {.range = quantize::RangeKind::kFixed, .is_training = false};
  }
  Output quantizer(const std::string& name, Output x, quantize::Range<float> range,
                   quantize::FakeQuantAttributes attributes = evaluating()) {
    set_range(name, Shape{}, range);
    return quantize::fake_quant(graph, name, x, attributes);
  }
  /// One range for each channel in the last axes.
  Output channel_quantizer(const std::string& name, Output x, int axes, quantize::FakeQuantAttributes attributes) {
    set_range(name, Shape(x.shape().extents().last(axes)), {-1, 1});
    return quantize::fake_quant(graph, name, x, attributes, {}, axes);
  }
  void set_range(const std::string& name, const Shape& shape, quantize::Range<float> range) {
    const auto count = static_cast<std::size_t>(shape.elements());
    variables[name + "/min"] = Tensor::from(shape, std::vector<float>(count, range.min));
    variables[name + "/max"] = Tensor::from(shape, std::vector<float>(count, range.max));
  }

  /// `scope`/weights, narrow, in +-1.
  Output weights(const std::string& scope, const Shape& shape) {
    quantize::FakeQuantAttributes attributes = evaluating();
    attributes.narrow_range = true;
    return quantizer(scope + "/weights_quant", variable(scope + "/weights", shape), {-1, 1}, attributes);
  }
  /// `scope`/Conv2D, `scope`/BiasAdd: 3x3, to `channels`.
  Output conv(const std::string& scope, Output x, std::int64_t channels = 4) {
    const Output filter = weights(scope, {3, 3, x.shape()[3], channels});
    return bias(scope, layers::conv2d(graph, scope + "/Conv2D", x, filter));
  }
  Output bias(const std::string& scope, Output x) {
    return layers::bias_add(graph, scope + "/BiasAdd", x, variable(scope + "/biases", {x.shape().channels()}));
  }

  integer::Model convert(Output output) {
    graph.set_outputs({output});
    return quantize::convert(graph, variables, {.input = input, .name = "net"});
  }
  /// Converted, and agreeing with the graph.
  integer::Model faithful(Output output) {
    const integer::Model model = convert(output);
    expect_faithful(graph, variables, model, images_for(graph, model, 1));
    return model;
  }
  std::string refusal(Output output) {
    return error_of([&] { convert(output); });
  }
};

inline std::vector<std::string> operations_of(const integer::Model& model) {
  std::vector<std::string> texts;
  for (const integer::Operation& operation : model.operations)
    texts.push_back(
        concat(integer::type_name(operation.action), " ", operation.name, " -> ", model.output_of(operation).name));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace miniqat::testing
