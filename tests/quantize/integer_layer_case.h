#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/plan/plan.h"
#include "core/engine/session.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize::integer_layers_test {

/// images -> (Relu) -> FakeQuant -> Conv2D <- FakeQuant <- filter, and the mean of what becomes of it squared; or with
/// `matrix` a MatMul of the images as rows.
struct LayerCase {
  Shape images;
  Shape filter;
  layers::Conv2dAttributes window = {};
  bool matrix = false;
  FakeQuantAttributes x = {};
  FakeQuantAttributes w = {};
  int w_axes = 1;
  bool relu = true;
  /// What makes bytes of bytes before the layer, of images of another shape; may be none.
  Output (*pass)(Graph& graph, Output x) = nullptr;
  Shape fed = {};

  const Shape& fed_shape() const { return pass != nullptr ? fed : images; }
  std::string text() const {
    return concat(matrix ? "MatMul " : "Conv2D ", images, " by ", filter, ", x ", x.bits, " bits, w ", w.bits,
                  w.symmetric ? " symmetric" : "", w.narrow_range ? " narrow" : "", ", axes ", w_axes, ", stride ",
                  window.strides[0], ", dilation ", window.dilations[0], relu ? ", Relu" : "",
                  pass != nullptr ? ", of " : "", pass != nullptr ? fed.str() : "", ", ", thread_count(), " threads");
  }
};

struct LayerNet {
  Graph graph;
  Output images, filter, x, w, y, loss;

  explicit LayerNet(const LayerCase& c) {
    images = placeholder(graph, "images", c.fed_shape());
    filter = variable(graph, "filter", c.filter, Initializer::truncated_normal(0.5));
    x = fake_quant(graph, "x", c.relu ? layers::relu(graph, "relu", images) : images, c.x, {-0.7, 1.9});
    if (c.pass != nullptr) x = c.pass(graph, x);
    w = fake_quant(graph, "w", filter, c.w, {-1.2, 0.8}, c.w_axes);
    const Output in =
        c.matrix ? layers::reshape(graph, "rows", x, {.shape = {c.images[0], c.images.elements() / c.images[0]}}) : x;
    y = c.matrix ? layers::matmul(graph, "layer", in, w) : layers::conv2d(graph, "layer", in, w, c.window);
    std::vector<std::int64_t> axes;
    for (int i = 0; i < y.shape().rank(); ++i) axes.push_back(i);
    loss = layers::mean(graph, "loss", layers::square(graph, "square", y), {.axes = axes});
  }

  /// A training step; with `all` the layer's inputs and output, too.
  RunRequest step(bool all) const {
    RunRequest request = {
        .fetches = {loss}, .gradients_of = loss, .gradient_targets = {filter, images}, .training = true};
    if (all) request.fetches.insert(request.fetches.end(), {y, x, w});
    return request;
  }
};

Tensor images_of(const LayerCase& c, std::uint64_t key);

/// Whether the layer reads bytes in this plan, or why not, and whether its input has float32 numbers as well.
struct Reading {
  bool packed = false;
  bool floats = false;
  std::string why_float = {};
};
Reading reading_of(const LayerNet& net, const RunRequest& run);

/// The layer's output from the double reference of the integers.
Tensor expected_output(const LayerCase& c, const LayerNet& net, Session& session, const Tensor& x, const Tensor& w);

void expect_equal(const Tensor& got, const Tensor& wanted, const std::string& what);
/// Beside the largest number.
void expect_near(const Tensor& got, const Tensor& wanted, double tolerance, const std::string& what);

/// Sums are exact, gradients as simulated, and near these where they are rounded.
void check_layer(const LayerCase& c, bool reads_packed);

FakeQuantAttributes quantizer(std::int64_t bits, bool symmetric, bool narrow, RangeKind range);

/// Whether bytes that oneDNN multiplies exactly hold a weight's integers, less the zero point or half of the codes.
bool is_exact(const FakeQuantAttributes& w);

}  // namespace miniqat::quantize::integer_layers_test
