#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "core/tensors/random.h"
#include "layers/layers.h"

namespace miniqat::testing {

/// What stands where in a small net of one layer with batch norm, and what its parameters are.
struct FoldingCase {
  enum class Layer { kConv, kDepthwise, kMatMul, kMatMulTransposed, kMatMulReshaped, kAtrous };
  enum class Activation { kNone, kRelu, kRelu6 };
  enum class Bypass { kNone, kBeforeActivation, kAfterActivation };

  Layer layer = Layer::kConv;
  Activation activation = Activation::kRelu;
  Bypass bypass = Bypass::kNone;
  bool scaling = true;
  /// Identity between layer and batch norm, and after the batch norm.
  bool identity = false;
  /// Of the BatchNorm before any rewrite.
  std::int64_t freeze_delay = -1;
  /// The batch norm in primitive ops.
  bool spelled_out = false;

  std::string name() const {
    constexpr const char* kLayers[] = {"Conv", "Depthwise", "MatMul", "MatMulTransposed", "MatMulReshaped", "Atrous"};
    constexpr const char* kActivations[] = {"None", "Relu", "Relu6"};
    constexpr const char* kBypasses[] = {"", "BypassBefore", "BypassAfter"};
    return std::string(kLayers[static_cast<int>(layer)]) + kActivations[static_cast<int>(activation)] +
           kBypasses[static_cast<int>(bypass)] + (scaling ? "Scaled" : "Unscaled") + (identity ? "Identity" : "") +
           (spelled_out ? "SpelledOut" : "");
  }
};

/// The same numbers for the same name and shape.
inline Tensor numbers(const std::string& name, const Shape& shape, double low = -1, double high = 1) {
  Tensor tensor(shape);
  Random random(hash_text(name));
  for (float& value : tensor.values<float>()) value = static_cast<float>(low + (high - low) * random.uniform());
  return tensor;
}

/// For all placeholders.
inline Feeds numbered_feeds(const Graph& graph) {
  Feeds feeds;
  for (const Node* node : graph.nodes())
    if (node->type() == "Placeholder")
      feeds.emplace_back(node->output(), numbers(node->name(), node->output().shape()));
  return feeds;
}

/// Weights around 0, gammas of both signs, moving statistics away from where they start; ranges of quantizers stay.
inline void number_variables(const Graph& graph, Session& session) {
  for (const Node* node : graph.nodes()) {
    const std::string& name = node->name();
    if (node->type() != "Variable" || name.ends_with("/min") || name.ends_with("/max")) continue;
    const bool variance = name.ends_with("variance");
    session.set_variable(name, numbers(name, node->output().shape(), variance ? 0.3 : -1, variance ? 2 : 1));
  }
}

/// images -> block/<layer> -> batch norm -> ... -> `result`, times `weighting` so that no two elements have the same
/// gradient: `loss`.
struct FoldingNet {
  Graph graph;
  Output images;
  Output weighting;
  Output loss;

  explicit FoldingNet(const FoldingCase& c) {
    using Layer = FoldingCase::Layer;
    const bool dense =
        c.layer == Layer::kMatMul || c.layer == Layer::kMatMulTransposed || c.layer == Layer::kMatMulReshaped;
    images = dense ? layers::placeholder(graph, "images", {24, 5}) : layers::placeholder(graph, "images", {3, 6, 6, 4});
    Output y = layer(c);
    if (c.identity) y = layers::identity(graph, "net/block/copy", y);
    y = batch_norm(y, c);
    if (c.identity) y = layers::identity(graph, "net/block/update", y);
    const Output other = layers::placeholder(graph, "other", y.shape());
    if (c.bypass == FoldingCase::Bypass::kBeforeActivation) y = layers::add(graph, "net/Add", y, other);
    if (c.activation == FoldingCase::Activation::kRelu) y = layers::relu(graph, "net/block/Relu", y);
    if (c.activation == FoldingCase::Activation::kRelu6) y = layers::relu6(graph, "net/block/Relu6", y);
    if (c.bypass == FoldingCase::Bypass::kAfterActivation) y = layers::add(graph, "net/AddAfter", other, y);
    graph.set_outputs({y});
    weighting = layers::placeholder(graph, "weighting", y.shape());
    loss = layers::mul(graph, "loss", y, weighting);
  }

 private:
  Output layer(const FoldingCase& c) {
    using Layer = FoldingCase::Layer;
    const auto weights = [&](const Shape& shape) { return layers::variable(graph, "net/block/weights", shape); };
    switch (c.layer) {
      case Layer::kConv:
        return layers::conv2d(graph, "net/block/Conv2D", images, weights({3, 3, 4, 5}), {.strides = {2, 2}});
      case Layer::kDepthwise:
        return layers::depthwise_conv2d(graph, "net/block/Depthwise", images, weights({3, 3, 4, 2}));
      case Layer::kMatMul:
        return layers::matmul(graph, "net/block/MatMul", images, weights({5, 3}));
      case Layer::kMatMulTransposed:
        return layers::matmul(graph, "net/block/MatMul", images, weights({3, 5}), {.transpose_b = true});
      case Layer::kMatMulReshaped:
        return layers::reshape(graph, "net/block/Reshape",
                               layers::matmul(graph, "net/block/MatMul", images, weights({5, 3})),
                               {.shape = {24, 1, 1, 3}});
      case Layer::kAtrous: {
        const Output blocks = layers::space_to_batch(graph, "net/SpaceToBatchND", images,
                                                     {.block_shape = {2, 2}, .paddings = {{2, 2}, {2, 2}}});
        const Output conv =
            layers::conv2d(graph, "net/block/Conv2D", blocks, weights({3, 3, 4, 5}), {.padding = Padding::kValid});
        return layers::batch_to_space(graph, "net/block/BatchToSpaceND", conv,
                                      {.block_shape = {2, 2}, .crops = {{0, 0}, {0, 0}}});
      }
    }
    return {};
  }

  Output batch_norm(Output x, const FoldingCase& c) {
    if (c.spelled_out) return spelled_out_batch_norm(x, c.scaling);
    const Shape channels = {x.shape().channels()};
    const auto vector = [&](const char* name, bool trainable) {
      return layers::variable(graph, std::string("net/block/BatchNorm/") + name, channels, {}, trainable);
    };
    const Output gamma = c.scaling ? vector("gamma", true) : layers::constant(graph, "net/block/ones", channels, {1});
    return layers::batch_norm(graph, "net/block/BatchNorm", x, gamma, vector("beta", true),
                              vector("moving_mean", false), vector("moving_variance", false),
                              {.epsilon = 0.01, .decay = 0.9, .freeze_delay = c.freeze_delay});
  }

  Output spelled_out_batch_norm(Output x, bool scaling) {
    const std::string scope = "net/block/BatchNorm/";
    const Shape channels = {x.shape().channels()};
    std::vector<std::int64_t> axes(x.shape().rank() - 1);
    std::iota(axes.begin(), axes.end(), 0);
    const Output deviation =
        layers::sub(graph, scope + "Sub", x, layers::mean(graph, scope + "Mean", x, {.axes = axes}));
    const Output variance =
        layers::mean(graph, scope + "Mean_1", layers::square(graph, scope + "Square", deviation), {.axes = axes});
    const Output epsilon = layers::constant(graph, scope + "epsilon", {}, {0.01});
    Output factor = layers::rsqrt(graph, scope + "Rsqrt", layers::add(graph, scope + "Add", variance, epsilon));
    if (scaling) factor = layers::mul(graph, scope + "Mul", factor, layers::variable(graph, scope + "gamma", channels));
    const Output normalised = layers::mul(graph, scope + "Mul_1", deviation, factor);
    return layers::add(graph, scope + "Add_1", normalised, layers::variable(graph, scope + "beta", channels));
  }
};

}  // namespace miniqat::testing
