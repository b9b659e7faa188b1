
#include "core/text/quote.h"
#include "importers/onnx/ops.h"
#include "importers/onnx/windows.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/matmul.h"
#include "layers/parts.h"

namespace miniqat::importers {
namespace {

/// A literal of floats with one axis of that extent; axes of 1 before it do not count.
const std::vector<float>& vector_of(const Translation& t, const OnnxNode& node, int input, std::int64_t extent) {
  const Literal& literal = t.literal(node, input);
  const bool is_vector = literal.elements() == extent && !literal.extents.empty() && literal.extents.back() == extent;
  if (!literal.is_real() || !is_vector)
    node.refuse("needs ", extent, " floats as ", quote(node.input(input)), ", which is ",
                extents_text(literal.extents));
  return literal.reals();
}

std::vector<float> some_of(const std::vector<float>& numbers, std::int64_t first, std::int64_t count) {
  return {numbers.begin() + first, numbers.begin() + first + count};
}

/// Adds the bias, which is that input of the node. Behind a layer that a batch norm alone reads it is left to that:
/// batch norms then stand right behind layers, where they can become part of them, and a bias has no effect while the
/// batch's mean counts.
void add_bias(Translation& t, const OnnxNode& node, const std::string& scope, Activation& y, int input,
              const std::vector<float>& bias) {
  const pb::Node* reader = t.only_reader(node);
  if (reader != nullptr && reader->op_type() == "BatchNormalization" && reader->input(0) == node.output(0)) {
    y.bias = bias;
    return;
  }
  y.for_each_part([&](Output& part, const std::string& group, std::int64_t first) {
    const Output biases = t.variable(scope, group + "biases", node.input(input), {part.shape().channels()},
                                     some_of(bias, first, part.shape().channels()));
    part = layers::bias_add(t.graph(), t.name(scope, group + "BiasAdd"), part, biases);
  });
}

/// The third input of a Gemm, times beta, as one number for each of its columns. No two rows of it may differ: there is
/// a bias for each feature, not for each place in the batch.
std::vector<float> bias_of_gemm(const Translation& t, const OnnxNode& node, std::int64_t columns, float beta) {
  const Literal& literal = t.literal(node, 2);
  const std::vector<std::int64_t>& extents = literal.extents;
  const std::int64_t width = extents.empty() ? 1 : extents.back();
  const bool fits =
      literal.is_real() && extents.size() <= 2 && literal.elements() > 0 && (width == 1 || width == columns);
  if (!fits) node.refuse("needs ", columns, " floats as ", quote(node.input(2)), ", which is ", extents_text(extents));
  const std::vector<float>& numbers = literal.reals();
  for (std::size_t i = static_cast<std::size_t>(width); i < numbers.size(); ++i)
    if (numbers[i] != numbers[i - static_cast<std::size_t>(width)])
      node.refuse("adds another row of ", quote(node.input(2)), " ", extents_text(extents),
                  " to each example of the batch");
  std::vector<float> bias(static_cast<std::size_t>(columns));
  for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = beta * numbers[width == 1 ? 0 : c];
  return bias;
}

/// Rows in the order of x's columns, for x is ours and the rows are ONNX's.
std::vector<float> rows_in_order(const std::vector<float>& rows, const Columns& of_x, std::size_t width) {
  if (of_x.empty()) return rows;
  const std::vector<std::int64_t>& columns = of_x.list();
  std::vector<float> ordered(rows.size());
  for (std::size_t i = 0; i < columns.size(); ++i)
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                ordered.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(columns[i]) * width));
  return ordered;
}

struct Dense {
  Activation x;
  /// [in, out], its rows as in ONNX.
  Literal weights;
  float factor = 1;
};

/// x times the weights, and where they are a parameter.
Activation multiply(Translation& t, const OnnxNode& node, const std::string& scope, Dense dense) {
  const std::vector<std::int64_t>& extents = dense.weights.extents;
  if (dense.x.extents.size() != 2)
    node.refuse("multiplies ", extents_text(dense.x.extents), "; miniqat's MatMul takes matrices [batch, features]");
  if (!dense.weights.is_real() || extents.size() != 2 || extents[0] != dense.x.extents[1] || extents[1] == 0)
    node.refuse("multiplies ", extents_text(dense.x.extents), " by ", extents_text(extents));
  std::vector<float> numbers =
      rows_in_order(dense.weights.reals(), dense.x.columns, static_cast<std::size_t>(extents[1]));
  for (float& number : numbers) number *= dense.factor;
  const Output weights = t.variable(scope, "weights", node.input(1), {extents[0], extents[1]}, std::move(numbers));
  const Output y = layers::matmul(t.graph(), t.name(scope, "MatMul"), dense.x.output, weights);
  return {.output = y, .extents = {dense.x.extents[0], extents[1]}, .order = {0, 1}};
}

struct Filter {
  std::int64_t outputs, inputs, group;
};

/// More would be as many small layers.
constexpr std::int64_t kMostGroups = 16;

/// Whether a convolution convolves every channel by itself. Otherwise it has up to kMostGroups groups.
bool is_depthwise(const OnnxNode& node, const Filter& filter, std::int64_t channels) {
  const auto& [outputs, inputs, group] = filter;
  if (group == 1 && inputs != channels)
    node.refuse("has a filter for ", counted(inputs, "channel"), ", its input has ", channels);
  if (group == 1) return false;
  if (group < 1 || channels % group != 0 || inputs != channels / group || outputs % group != 0)
    node.refuse("has ", group, " groups of channels, which do not fit: ", channels, " in, ", outputs,
                " out, a filter for ", inputs);
  if (inputs != 1 && group > kMostGroups)
    node.refuse("has ", group, " groups of channels (", channels, " in, ", outputs, " out); up to ", kMostGroups,
                " groups and one group a channel are imported");
  return inputs == 1;
}

/// [out, in, k] as [out, in, k, 1].
Literal filter_of_images(const OnnxNode& node, Literal filter) {
  const std::size_t rank = filter.extents.size();
  if (!filter.is_real() || rank < 3 || rank > 4)
    node.refuse("has a filter ", extents_text(filter.extents),
                "; miniqat convolves images [n, c, h, w] and sequences [n, c, steps]");
  if (filter.elements() == 0) node.refuse("has an empty filter");
  filter.extents.resize(4, 1);
  return filter;
}

/// Convolves one group: its `filter` [out, in, h, w] becomes [h, w, in, out]; a depthwise one, [in * multiplier, 1, h,
/// w], becomes [h, w, in, multiplier].
Output convolve(Translation& t, const OnnxNode& node, const std::string& group, const Literal& filter, bool depthwise,
                Output x, const layers::Conv2dAttributes& attributes) {
  const std::vector<std::int64_t>& extents = filter.extents;
  const std::int64_t channels = x.shape().channels();
  const Literal ours =
      transposed(filter, depthwise ? std::vector<std::int64_t>{2, 3, 0, 1} : std::vector<std::int64_t>{2, 3, 1, 0});
  const Shape shape = depthwise ? Shape{extents[2], extents[3], channels, extents[0] / channels}
                                : Shape{extents[2], extents[3], extents[1], extents[0]};
  const std::string scope = t.scope_of(node, 1);
  const Output weights =
      t.variable(scope, group + (depthwise ? "depthwise_weights" : "weights"), node.input(1), shape, ours.reals());
  return depthwise
             ? layers::depthwise_conv2d(t.graph(), t.name(scope, group + "DepthwiseConv2d"), x, weights, attributes)
             : layers::conv2d(t.graph(), t.name(scope, group + "Conv2D"), x, weights, attributes);
}

/// Each group by itself: they are joined where their channels are needed together.
Activation convolve_groups(Translation& t, const OnnxNode& node, std::int64_t groups, const Literal& filter,
                           const Activation& x, const layers::Conv2dAttributes& attributes) {
  const std::string scope = t.scope_of(node, 1);
  std::vector<std::int64_t> extents = filter.extents;
  extents[0] /= groups;
  const std::vector<std::int64_t> strides = strides_of(filter.extents);
  std::vector<Output> parts;
  for (std::int64_t k = 0; k < groups; ++k) {
    const std::string group = concat("group", k, "/");
    const Output part = layers::slice(t.graph(), t.name(scope, group + "Slice"), x.output,
                                      {.axes = {3}, .starts = {k * extents[1]}, .ends = {(k + 1) * extents[1]}});
    const Literal own = picked(filter, extents, k * extents[0] * strides[0], strides);
    parts.push_back(convolve(t, node, group, own, false, part, attributes));
  }
  Activation y = images_like(x, parts[0]);
  y.extents[1] = filter.extents[0];
  y.output = {};
  y.parts = std::move(parts);
  return y;
}

}  // namespace

void import_conv(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t>& given = t.literal(node, 1).extents;
  const Literal filter = filter_of_images(node, t.literal(node, 1));
  Activation x = t.as_images(node, t.bordered(node, 0));
  if (given.size() != x.extents.size())
    node.refuse("has a filter ", extents_text(given), " for an input ", extents_text(x.extents));
  const std::vector<std::int64_t> kernel(given.begin() + 2, given.end());
  OnnxWindow window = read_window(node, x, kernel);
  if (!window.take_border(x.border)) {
    x = t.images(node, 0);
    window = read_window(node, x, kernel);
  }
  if (!window.meets_image()) {
    // Windows that see nothing but zeros need those as pixels.
    x.output = padded(t.graph(), t.name(t.scope_of(node, 1), "Pad"), x.output, window.pads);
    window.pads = {0, 0, 0, 0};
  }
  const std::int64_t groups = node.integer("group", 1);
  const bool depthwise = is_depthwise(node, {filter.extents[0], filter.extents[1], groups}, x.extents[1]);
  const layers::Conv2dAttributes attributes = window.convolution();
  Activation y = depthwise || groups == 1
                     ? images_like(x, convolve(t, node, "", filter, depthwise, x.output, attributes))
                     : convolve_groups(t, node, groups, filter, x, attributes);
  if (t.has(node, 2)) add_bias(t, node, t.scope_of(node, 1), y, 2, vector_of(t, node, 2, y.extents[1]));
  t.define(node, std::move(y));
}

void import_gemm(Translation& t, const OnnxNode& node) {
  if (node.integer("transA", 0) != 0) node.refuse("transposes its input, which is a batch");
  const Literal& b = t.literal(node, 1);
  const bool transposes = node.integer("transB", 0) != 0;
  if (b.extents.size() != 2) node.refuse("multiplies by ", extents_text(b.extents));
  Dense dense{.x = t.activation(node, 0),
              .weights = transposes ? transposed(b, {1, 0}) : b,
              .factor = static_cast<float>(node.number("alpha", 1))};
  const auto beta = static_cast<float>(node.number("beta", 1));
  const std::string scope = t.scope_of(node, 1);
  Activation y = multiply(t, node, scope, std::move(dense));
  if (t.has(node, 2)) add_bias(t, node, scope, y, 2, bias_of_gemm(t, node, y.extents[1], beta));
  t.define(node, std::move(y));
}

void import_matmul(Translation& t, const OnnxNode& node) {
  if (std::holds_alternative<Activation>(t.value(node, 1)))
    node.refuse("multiplies two tensors that the network computes; only a parameter can be its second input");
  t.define(node, multiply(t, node, t.scope_of(node, 1), {.x = t.activation(node, 0), .weights = t.literal(node, 1)}));
}

void import_batch_normalization(Translation& t, const OnnxNode& node) {
  Activation x = t.in_parts(node, 0);
  const int used = node.outputs();
  if (node.integer("training_mode", 0) != 0 || (used > 1 && !node.output(1).empty()))
    node.refuse("is in training mode; export the network for evaluation (model.eval())");
  if (node.integer("spatial", 1) != 1) node.refuse("normalises every pixel by itself, which miniqat does not");
  if (x.extents.size() != 2) x = t.as_images(node, std::move(x));
  const layers::BatchNormAttributes attributes = {.epsilon = node.number("epsilon", 1e-5),
                                                  .decay = node.number("momentum", 0.9)};
  const std::string scope = t.scope_of(node, 1);
  x.for_each_part([&](Output& part, const std::string& group, std::int64_t first) {
    const std::int64_t channels = part.shape().channels();
    const auto parameter = [&](int input, const char* suffix, bool trainable) {
      std::vector<float> all = rows_in_order(vector_of(t, node, input, x.extents[1]), x.columns, 1);
      for (std::size_t c = 0; input == 3 && c < x.bias.size(); ++c) all[c] -= x.bias[c];
      return t.variable(scope, group + "BatchNorm/" + suffix, node.input(input), {channels},
                        some_of(all, first, channels), trainable);
    };
    const Output gamma = parameter(1, "gamma", true), beta = parameter(2, "beta", true);
    const Output mean = parameter(3, "moving_mean", false), variance = parameter(4, "moving_variance", false);
    part = layers::batch_norm(t.graph(), t.name(scope, group + "BatchNorm"), part, gamma, beta, mean, variance,
                              attributes);
  });
  x.bias.clear();
  t.define(node, std::move(x));
}

}  // namespace miniqat::importers
