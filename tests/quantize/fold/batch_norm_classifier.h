#pragma once

#include <string>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "tests/quantize/fold/folding_net.h"

namespace miniqat::testing {

/// A net that learns three classes in some dozen steps: conv and depthwise conv with batch norms, then a matrix
/// product.
struct BatchNormClassifier {
  static constexpr std::int64_t kImages = 24;
  static constexpr std::int64_t kClasses = 3;

  Graph graph;
  Output images;
  Output labels;
  Output logits;
  Output loss;

  explicit BatchNormClassifier(double epsilon = 1e-3) {
    images = layers::placeholder(graph, "images", {kImages, 6, 6, 2});
    labels = layers::placeholder(graph, "labels", {kImages}, DType::kInt32);
    Output x = layers::conv2d(graph, "conv/Conv2D", images, layers::variable(graph, "conv/weights", {3, 3, 2, 4}),
                              {.padding = Padding::kValid});
    x = layers::relu(graph, "conv/Relu", batch_norm("conv", x, epsilon));
    x = layers::depthwise_conv2d(graph, "dw/Depthwise", x, layers::variable(graph, "dw/weights", {3, 3, 4, 1}));
    x = layers::relu6(graph, "dw/Relu6", batch_norm("dw", x, epsilon));
    x = layers::mean(graph, "pool", x, {.axes = {1, 2}});
    x = layers::matmul(graph, "fc/MatMul", x, layers::variable(graph, "fc/weights", {4, kClasses}));
    logits = layers::bias_add(graph, "fc/BiasAdd", x, layers::variable(graph, "fc/biases", {kClasses}));
    graph.set_outputs({logits});
    loss = layers::softmax_cross_entropy(graph, logits, labels);
  }

  /// The images of a class share a pattern.
  Feeds batch() const {
    Tensor noise = numbers("noise", images.shape());
    const Tensor patterns = numbers("patterns", {kClasses, 6, 6, 2});
    Tensor classes(labels.spec());
    const std::int64_t pixels = patterns.elements() / kClasses;
    for (std::int64_t i = 0; i < kImages; ++i) {
      classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % kClasses);
      for (std::int64_t k = 0; k < pixels; ++k)
        noise.data<float>()[i * pixels + k] += patterns.data<float>()[(i % kClasses) * pixels + k];
    }
    return {{images, noise}, {labels, classes}};
  }

  static optim::Sgd optimizer() { return optim::Sgd({.learning_rate = 0.05, .momentum = 0.9}); }

 private:
  Output batch_norm(const std::string& scope, Output x, double epsilon) {
    const auto vector = [&](const std::string& name, double value, bool trainable) {
      return layers::variable(graph, scope + "/" + name, {x.shape().channels()}, Initializer::constant(value),
                              trainable);
    };
    return layers::batch_norm(graph, scope + "/BatchNorm", x, vector("gamma", 1, true), vector("beta", 0, true),
                              vector("moving_mean", 0, false), vector("moving_variance", 1, false),
                              {.epsilon = epsilon, .decay = 0.9});
  }
};

}  // namespace miniqat::testing
