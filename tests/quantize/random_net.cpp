#include "tests/quantize/random_net.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/graph/registry.h"
#include "quantize/quantize.h"
#include "tests/op_samples.h"
#include "tests/quantize/net_parts.h"

namespace miniqat::testing {
namespace {

/// Adds one op after the other; each takes any of the tensors there are.
class AnyOps {
 public:
  AnyOps(std::uint64_t seed, std::int64_t more_channels) : parts_(seed) {
    parts_.more_channels = more_channels;
    tensors_ = {placeholder("images", {3, 6, 6, 3}), placeholder("more", {3, 6, 6, 3}), placeholder("rows", {3, 4})};
    const int count = 8 + parts_.below(20);
    for (int i = 0; i < count; ++i) {
      parts_.scope = (parts_.chance(3) ? "aux/n" : "net/n") + std::to_string(i);
      Output y;
      while (!y.node) y = any_op(any());
      tensors_.push_back(tame(y));
    }
    parts_.graph.set_outputs({tensors_.back(), any(), any()});
  }

  Graph take() { return std::move(parts_.graph); }

 private:
  Output placeholder(const std::string& name, const Shape& shape) {
    return layers::placeholder(parts_.graph, name, shape);
  }

  /// Late tensors more often, so that nets are deep as well as broad.
  Output any() {
    const std::size_t last = tensors_.size() - 1;
    return parts_.chance(2) ? tensors_[last - parts_.below(std::min<std::size_t>(3, last) + 1)]
                            : tensors_[parts_.below(last + 1)];
  }

  /// Of the shape of x; x itself when there is no other.
  Output like(Output x) {
    std::vector<Output> fitting;
    std::ranges::copy_if(tensors_, std::back_inserter(fitting), [&](Output y) { return y.shape() == x.shape(); });
    return fitting.empty() ? x : fitting[parts_.below(fitting.size())];
  }

  Output any_op(Output x) {
    const bool images = x.shape().rank() == 4;
    switch (parts_.below(8)) {
      case 0:
        return arithmetic(x);
      case 1:
        return pointwise(x);
      case 2:
        return images ? rearrangement(x) : rows_to_images(x);
      case 3:
        return images ? window(x) : Output{};
      case 4:
        return normalisation(x);
      case 5:
        return block(x);
      case 6:
        return parts_.layer(x);
      default:
        return odd_layer(x);
    }
  }

  Output arithmetic(Output x);
  Output guarded(Output x);
  Output pointwise(Output x);
  Output rearrangement(Output x);
  Output rows_to_images(Output x);
  Output window(Output x);
  Output normalisation(Output x);
  Output rearranged(Output x);
  Output shared_batch_norm(Output x);
  Output block(Output x);
  Output odd_layer(Output x);
  Output quantizer(Output x);

  /// The same or, where products of products have made large powers of the inputs, limited.
  Output tame(Output y) { return degree(y) > 4 ? layers::relu6(graph(), name("tame"), y) : y; }
  int degree(Output tensor);

  Graph& graph() { return parts_.graph; }
  std::string name(const std::string& stem) const { return parts_.name(stem); }

  NetParts parts_;
  std::vector<Output> tensors_;
  std::vector<Node*> norms_;
  std::unordered_map<const Node*, int> degrees_;
};

int AnyOps::degree(Output tensor) {
  const Node& node = *tensor.node;
  if (const auto known = degrees_.find(&node); known != degrees_.end()) return known->second;
  const std::string_view type = node.type();
  int most = 0;
  int sum = 0;
  for (const Output& input : node.inputs()) {
    most = std::max(most, degree(input));
    sum += degree(input);
  }
  int result = node.inputs().empty() ? 1 : most;
  if (type == "Mul") result = sum;
  if (type == "Square") result = 2 * most;
  if (type == "Relu6" || type == "Softmax" || type == "BatchNorm" || type == "Reciprocal" || type == "Rsqrt")
    result = 1;
  return degrees_[&node] = result;
}

/// 0.5 + x^2.
Output AnyOps::guarded(Output x) {
  const Output half = layers::constant(graph(), name("half"), {}, {0.5});
  return layers::add(graph(), name("guard"), layers::square(graph(), name("Square"), x), half);
}

Output AnyOps::arithmetic(Output x) {
  const Output v = parts_.chance(2) ? parts_.vector("vector", x.shape().channels())
                                    : layers::constant(graph(), name("constant"), {x.shape().channels()}, {-0.7});
  switch (parts_.below(8)) {
    case 0:
      return layers::add(graph(), name("Add"), x, v);
    case 1:
      return layers::sub(graph(), name("Sub"), x, like(x));
    case 2:
      return layers::sub(graph(), name("Sub"), v, x);
    case 3:
      return layers::mul(graph(), name("Mul"), x, like(x));
    case 4:
      return layers::mul(graph(), name("Mul"), v, x);
    case 5:
      return layers::div(graph(), name("Div"), x, guarded(like(x)));
    case 6:
      return layers::bias_add(graph(), name("BiasAdd"), x, v);
    default:
      return layers::add(graph(), name("Add"), like(x), x);
  }
}

/// Ops that take any number and have no place of their own in these nets.
const std::vector<std::string>& other_ops() {
  static const std::vector<std::string> types = [] {
    layers::register_ops();
    const std::set<std::string> placed = {"Identity", "Reciprocal", "Relu", "Relu6", "Rsqrt", "Softmax", "Square"};
    std::vector<std::string> others;
    for (const UnaryType& op : unary_types())
      if (op.low < 0 && op.high > 0 && !placed.contains(op.type)) others.push_back(op.type);
    return others;
  }();
  return types;
}

Output AnyOps::pointwise(Output x) {
  const int choice = parts_.below(8 + other_ops().size());
  if (choice >= 8) {
    const std::string& type = other_ops()[static_cast<std::size_t>(choice - 8)];
    return graph().add(name(type), make_op(type), {x}).output();
  }
  switch (choice) {
    case 0:
      return layers::relu(graph(), name("Relu"), x);
    case 1:
      return layers::relu6(graph(), name("Relu6"), x);
    case 2:
      return layers::identity(graph(), name("Identity"), x);
    case 3:
      return layers::softmax(graph(), name("Softmax"), x);
    case 4:
      return layers::dropout(graph(), name("Dropout"), x, {.rate = 0.3});
    case 5:
      return layers::rsqrt(graph(), name("Rsqrt"), guarded(x));
    case 6:
      return layers::reciprocal(graph(), name("Reciprocal"), guarded(x));
    default:
      return quantizer(x);
  }
}

Output AnyOps::quantizer(Output x) {
  const bool acts = parts_.chance(3);
  const auto range = acts && parts_.chance(2) ? quantize::RangeKind::kLearned
                     : acts                   ? quantize::RangeKind::kFixed
                     : parts_.chance(2)       ? quantize::RangeKind::kLastValue
                                              : quantize::RangeKind::kMovingAverage;
  return quantize::fake_quant(graph(), name("FakeQuant"), x,
                              {.bits = 2 + parts_.below(7), .range = range, .delay = acts ? 0 : kNever},
                              {.min = -2.3, .max = 3.1});
}

Output AnyOps::rearrangement(Output x) {
  const Shape& shape = x.shape();
  const Output other = like(x);
  const bool small = shape[1] * shape[2] <= 40;
  switch (parts_.below(7)) {
    case 0:
      return parts_.flat(x);
    case 1:
      return layers::reshape(graph(), name("Reshape"), x, {.shape = {shape[0], shape[2], shape[1], shape[3]}});
    case 2:
      return shape[3] <= 5 ? layers::concat(graph(), name("Concat"), {x, other}) : Output{};
    case 3:
      return small ? layers::concat(graph(), name("Concat"), {x, other, x}, {.axis = 2}) : Output{};
    case 4:
      return small ? parts_.pad(x) : Output{};
    case 5:
      return parts_.slice(x);
    default:
      return layers::mean(graph(), name("Mean"), x, {.axes = {1, 2}, .keep_dims = parts_.chance(2)});
  }
}

Output AnyOps::rows_to_images(Output x) {
  const Shape& shape = x.shape();
  if (parts_.chance(3) && shape[1] <= 8) return layers::concat(graph(), name("Concat"), {like(x), x}, {.axis = 1});
  if (shape[1] % 4 == 0 && parts_.chance(2))
    return layers::reshape(graph(), name("Reshape"), x, {.shape = {shape[0], 2, 2, -1}});
  return layers::reshape(graph(), name("Reshape"), x, {.shape = {shape[0], 1, 1, -1}});
}

Output AnyOps::window(Output x) {
  switch (parts_.below(4)) {
    case 0:
      return parts_.max_pool(x);
    case 1:
      return parts_.avg_pool(x);
    case 2:
      return parts_.atrous(x);
    default:
      return parts_.conv(parts_.depthwise(x));
  }
}

Output AnyOps::normalisation(Output x) {
  if (parts_.chance(2)) x = rearranged(parts_.layer(x));
  if (NetParts::fits_primitive_batch_norm(x) && parts_.chance(2))
    return parts_.primitive_batch_norm(x, parts_.chance(3) ? tensors_.front() : x);
  if (parts_.chance(3)) return shared_batch_norm(x);
  const Output y = parts_.batch_norm(x, !parts_.chance(4));
  norms_.push_back(y.node);
  return parts_.chance(6) ? layers::add(graph(), name("Add"), y, y.node->output(parts_.chance(2) ? 1 : 2)) : y;
}

/// By what may stand before a batch norm, in some cases so that it cannot be folded; or not at all.
Output AnyOps::rearranged(Output x) {
  const Shape& shape = x.shape();
  const auto reshape = [&](std::vector<std::int64_t> to) {
    return layers::reshape(graph(), name("Reshape"), x, {.shape = std::move(to)});
  };
  const bool images = shape.rank() == 4;
  switch (parts_.below(6)) {
    case 0:
      return images ? reshape({shape[0], shape[1], shape[3], shape[2]}) : reshape({shape[1], shape[0]});
    case 1:
      return images ? reshape({shape[0], 1, -1, shape[3]}) : reshape({shape[0], 1, 1, shape[1]});
    case 2:
      return layers::identity(graph(), name("copy"), x);
    default:
      return x;
  }
}

/// With parameters of another batch norm, at times its moving statistics as well: one of the two may move them.
Output AnyOps::shared_batch_norm(Output x) {
  for (const Node* norm : norms_)
    if (norm->input(1).shape().channels() == x.shape().channels())
      return layers::batch_norm(graph(), name("BatchNorm"), x, norm->input(1), norm->input(2), norm->input(3),
                                norm->input(4), {.epsilon = 0.01, .is_training = false});
  return {};
}

Output AnyOps::block(Output x) {
  Output y = parts_.bias_or_batch_norm(parts_.layer(x));
  if (parts_.chance(3)) y = layers::add(graph(), name("bypass"), y, like(y));
  y = parts_.activation(y);
  if (parts_.chance(4)) tensors_.push_back(y);
  return parts_.chance(3) ? layers::add(graph(), name("bypass"), like(y), y) : y;
}

/// Layers that are not, or hardly, to be quantized.
Output AnyOps::odd_layer(Output x) {
  const Shape& shape = x.shape();
  if (shape.rank() == 4) {
    const Output pixels = layers::mean(graph(), name("Mean"), x, {.axes = {0}});
    return layers::conv2d(graph(), name("Conv2D"), x,
                          layers::reshape(graph(), name("filter"), pixels, {.shape = {1, -1, shape[3], 1}}));
  }
  switch (parts_.below(3)) {
    case 0:
      return layers::matmul(graph(), name("MatMul"), parts_.weights({3, shape[0]}), x);
    case 1:
      return layers::matmul(graph(), name("MatMul"), x, parts_.weights({shape[0], 3}), {.transpose_a = true});
    default:
      return layers::matmul(graph(), name("MatMul"), x, x, {.transpose_b = true});
  }
}

}  // namespace

Graph random_net(std::uint64_t seed) { return AnyOps(seed, 0).take(); }

Graph wide_random_net(std::uint64_t seed) { return AnyOps(seed, kMoreChannels).take(); }

}  // namespace miniqat::testing
