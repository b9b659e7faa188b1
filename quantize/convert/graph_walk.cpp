#include "quantize/convert/graph_walk.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/text/error.h"
#include "layers/layers.h"
#include "quantize/convert/integer_grid.h"
#include "quantize/convert/integer_layer.h"
#include "quantize/convert/not_quantized.h"
#include "quantize/fake_quant.h"
#include "quantize/fold/folded_layer.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"

namespace miniqat::quantize {

using integer::LayerKind;

namespace {

/// The most pixels of a window whose mean is taken: the model has a multiplier for each number of them.
constexpr std::int64_t kMostPixels = 1 << 20;

/// `reader` reads a tensor that no quantizer gave a range.
[[noreturn]] void fail_without_range(Output tensor, const std::string& reader) {
  throw NotQuantized(concat(reader, " reads ", tensor.name(), ", which has no range"));
}

[[noreturn]] void fail_without_quantized_picture(Output tensor, const std::string& reader) {
  throw PictureNotQuantized(concat(reader, " reads ", tensor.name(), ", which has no range: it is computed from the ",
                                   "picture, which has no quantizer; train or calibrate with `quantize_input`"));
}

/// Whether one of these rearranges the results of an operation that waits for its grid.
template <class Action>
bool has_behind(const Pending& pending) {
  return std::ranges::any_of(pending.rearrangements,
                             [](const Rearrangement& step) { return std::holds_alternative<Action>(step.action); });
}

[[noreturn]] void fail_unsupported(const Node& node) {
  if (node.as<layers::Softmax>()) fail(describe(node), " can only be left out at the end of an integer model");
  fail(describe(node), " cannot be part of an integer model");
}

}  // namespace

GraphWalk::GraphWalk(const StaticValues& values, Output output, const std::optional<integer::Grid>& input,
                     const std::string& name)
    : values_(values), output_(output), input_grid_(input), builder_(name) {}

integer::Model GraphWalk::convert() {
  for (Node* node : values_.moving()) visit(*node);
  return builder_.finish(tensor(output_, "the output"));
}

GraphWalk::Value& GraphWalk::at(Output tensor) {
  const auto made = made_.find({tensor.node, tensor.index});
  if (made == made_.end()) fail(describe(*tensor.node), " gives ", tensor.name(), ", which no integer model has");
  return made->second;
}

void GraphWalk::visit(Node& node) { made_.emplace(std::pair(&node, 0), value_of(node)); }

GraphWalk::Value GraphWalk::value_of(Node& node) {
  using Make = Value (*)(GraphWalk&, const Node&);
  static const std::unordered_map<std::string_view, Make> kMakers = {
      {Placeholder::kType, [](GraphWalk& w, const Node& n) { return w.input(n); }},
      {FakeQuant::kType, [](GraphWalk& w, const Node& n) { return w.quantizer(n); }},
      {layers::Conv2d::kType, [](GraphWalk& w, const Node& n) { return w.layer(n); }},
      {layers::DepthwiseConv2d::kType, [](GraphWalk& w, const Node& n) { return w.layer(n); }},
      {layers::MatMul::kType, [](GraphWalk& w, const Node& n) { return w.layer(n); }},
      {layers::BiasAdd::kType, [](GraphWalk& w, const Node& n) { return w.two_operands(n); }},
      {layers::BatchNorm::kType, [](GraphWalk& w, const Node& n) { return w.normalised(n); }},
      {layers::Add::kType, [](GraphWalk& w, const Node& n) { return w.two_operands(n); }},
      {layers::Sub::kType, [](GraphWalk& w, const Node& n) { return w.two_operands(n); }},
      {layers::Div::kType, [](GraphWalk& w, const Node& n) { return w.two_operands(n); }},
      {layers::Mul::kType, [](GraphWalk& w, const Node& n) { return w.two_operands(n); }},
      {layers::Relu::kType, [](GraphWalk& w, const Node& n) { return w.clamped(n); }},
      {layers::Relu6::kType, [](GraphWalk& w, const Node& n) { return w.clamped(n); }},
      {layers::Clip::kType, [](GraphWalk& w, const Node& n) { return w.clamped(n); }},
      {layers::Concat::kType, [](GraphWalk& w, const Node& n) { return w.joined(n); }},
      {layers::AvgPool::kType,
       [](GraphWalk& w, const Node& n) {
         const layers::PoolAttributes& attributes = *n.as<layers::AvgPool>();
         return w.average(n, layers::window_of(n.input(0).shape(), attributes));
       }},
      {layers::Mean::kType, [](GraphWalk& w, const Node& n) { return w.mean(n); }},
      {layers::MaxPool::kType, [](GraphWalk& w, const Node& n) { return w.max_pool(n); }},
      {layers::Reshape::kType, [](GraphWalk& w, const Node& n) { return w.reshaped(n); }},
      {layers::Pad::kType, [](GraphWalk& w, const Node& n) { return w.padded(n); }},
      {layers::Slice::kType, [](GraphWalk& w, const Node& n) { return w.cut(n); }},
      {layers::SpaceToBatchNd::kType, [](GraphWalk& w, const Node& n) { return w.to_batch(n); }},
      {layers::BatchToSpaceNd::kType, [](GraphWalk& w, const Node& n) { return w.to_space(n); }},
      {layers::Identity::kType, [](GraphWalk& w, const Node& n) { return w.at(n.input(0)); }},
      {layers::Dropout::kType, [](GraphWalk& w, const Node& n) { return w.at(n.input(0)); }},
  };
  const auto maker = kMakers.find(node.type());
  if (maker != kMakers.end()) return maker->second(*this, node);
  if (has_role(node, OpRole::kTable)) return looked_up(node);
  fail_unsupported(node);
}

// The ends, and quantizers.

GraphWalk::Value GraphWalk::input(const Node& placeholder) {
  const Shape& shape = placeholder.output().shape();
  if (placeholder.output().spec().dtype != DType::kFloat32 || shape.rank() == 0)
    fail(describe(placeholder), " feeds ", name_of(placeholder.output().spec().dtype), " ", shape,
         "; an integer model takes batches whose real numbers are float32");
  picture_is_quantized_ =
      std::ranges::any_of(placeholder.uses(), [](const Use& use) { return is_quantizer(*use.node); });
  if (const Node* quantizer = input_quantizer(placeholder))
    return builder_.add_input(quantizer->name(), example_of(shape), target_of(*quantizer).grid);
  for (const Use& use : placeholder.uses())
    if (!input_grid_ && is_quantizer(*use.node) && target_of(*use.node).affine.empty())
      fail(describe(*use.node), " has the range [0, 0]: all inputs were equal, and no integer tells others apart");
  if (!input_grid_)
    throw NotQuantized(concat(describe(placeholder), " takes numbers, of which no data set says the range, and has no ",
                              "quantizer of its own; train or calibrate with `quantize_input`"));
  return builder_.add_input(placeholder.name(), example_of(shape), *input_grid_);
}

/// The quantizer through which alone the input is read, if that may use its whole grid.
const Node* GraphWalk::input_quantizer(const Node& placeholder) const {
  const Node* found = nullptr;
  for (const Use& use : placeholder.uses()) {
    if (!values_.moves(use.node)) continue;
    if (found || !is_quantizer(*use.node)) return nullptr;
    found = use.node;
  }
  return found && target_of(*found).is_whole() ? found : nullptr;
}

Target GraphWalk::target_of(const Node& quantizer) const {
  return activation_target(quantizer, values_.value(quantizer.input(1)), values_.value(quantizer.input(2)));
}

GraphWalk::Value GraphWalk::quantizer(const Node& node) {
  const Target target = target_of(node);
  Value& value = at(node.input(0));
  if (const int* x = std::get_if<int>(&value)) {
    if (builder_.tensor(*x).grid == target.grid && target.is_whole()) return *x;
    return builder_.add({.operation = node.name(),
                         .action = integer::Rescale{},
                         .inputs = {*x},
                         .shape = builder_.tensor(*x).shape,
                         .tensor = node.name()},
                        target, node.name());
  }
  const auto* pending = std::get_if<Pending>(&value);
  if (!pending || pending->atrous) fail(describe(node), " lies between SpaceToBatchND and BatchToSpaceND");
  return builder_.add(*pending, target, node.name());
}

bool GraphWalk::has_grid(const Pending& pending) const {
  const auto same = [&](int i) { return builder_.tensor(i).grid == builder_.tensor(pending.inputs.front()).grid; };
  return std::holds_alternative<integer::Rescale>(pending.action) ||
         (std::holds_alternative<integer::Concat>(pending.action) && std::ranges::all_of(pending.inputs, same));
}

/// Whether nothing but the picture, without a quantizer, leads to the tensor, and no layer: ops get a range from
/// quantized inputs. One other input would do.
bool GraphWalk::is_of_plain_picture(Output tensor) const {
  const Node& node = *tensor.node;
  if (node.as<Placeholder>()) return !picture_is_quantized_;
  if (is_quantizer(node) || has_role(node, OpRole::kLayer)) return false;
  return std::ranges::all_of(
      node.inputs(), [&](const Output& input) { return !values_.moves(input.node) || is_of_plain_picture(input); });
}

int GraphWalk::tensor(Output read, const std::string& reader) {
  if (!values_.moves(read.node)) fail(reader, " reads ", read.name(), ", which is the same for every input");
  Value& value = at(read);
  const auto* pending = std::get_if<Pending>(&value);
  if (std::holds_alternative<Blocks>(value) || (pending && pending->atrous))
    fail(reader, " reads ", read.name(), ", which lies between SpaceToBatchND and BatchToSpaceND");
  if (pending) {
    if (!has_grid(*pending) && is_of_plain_picture(read)) fail_without_quantized_picture(read, reader);
    if (!has_grid(*pending)) fail_without_range(read, reader);
    const Target grid = whole(builder_.tensor(pending->inputs.front()).grid);
    // What a Clip makes of all numbers of the grid may lie beyond it.
    if (pending->range.min > grid.affine.nudged_max || pending->range.max < grid.affine.nudged_min)
      fail_without_range(read, reader);
    value = builder_.add(*pending, grid, read.name());
  }
  return std::get<int>(value);
}

int GraphWalk::input_tensor(const Node& node, int i) { return tensor(node.input(i), describe(node)); }

// Layers with their biases and batch norms.

GraphWalk::Value GraphWalk::layer(const Node& node) {
  Pending pending = {
      .operation = node.name(), .action = weights(node), .inputs = {}, .shape = {}, .tensor = node.name()};
  auto& layer = std::get<integer::Layer>(pending.action);
  pending.bias.assign(static_cast<std::size_t>(layer.output_channels()), 0);
  pending.shape = example_of(node.output().shape());
  if (layer.kind != LayerKind::kFullyConnected) layer.window = layers::window_of(node);
  if (const auto* blocks = std::get_if<Blocks>(&at(node.input(0)));
      blocks && layer.kind != LayerKind::kFullyConnected) {
    pending.atrous = blocks->atrous;
    pending.atrous->window = layer.window;
    pending.inputs = {blocks->tensor};
  } else {
    pending.inputs = {input_tensor(node)};
  }
  return pending;
}

integer::Layer GraphWalk::weights(const Node& node) {
  for (const int i : {0, 1})
    if (values_.moves(node.input(i).node) != (i == 0))
      fail(describe(node), " must read the network's tensors as input 0 and weights as input 1, reads ",
           node.input(0).name(), " and ", node.input(1).name());
  integer::Layer layer;
  bool transposed = false;
  if (const auto* product = node.as<layers::MatMul>()) {
    layer.kind = LayerKind::kFullyConnected;
    transposed = product->transpose_b;
    if (product->transpose_a) fail(describe(node), " transposes the batch, which no integer model does");
  } else {
    layer.kind = node.as<layers::DepthwiseConv2d>() ? LayerKind::kDepthwiseConv2d : LayerKind::kConv2d;
  }
  const Output quantized = source_through(node.input(1), kIdentity);
  if (!is_quantizer(*quantized.node)) fail_without_range(quantized, describe(node));
  const auto inputs = quantized.node->inputs();
  quantize_weights(layer, *quantized.node, values_.value(inputs[0]), values_.value(inputs[1]), values_.value(inputs[2]),
                   transposed);
  return layer;
}

GraphWalk::Value GraphWalk::biased(const Node& node, Output summand, Output bias) {
  Pending pending = layer_sum(node, summand);
  const std::int64_t channels = pending.last_shape().channels();
  const Tensor& value = values_.value(bias);
  const bool fits = (value.elements() == 1 || (value.elements() == channels && value.shape().channels() == channels)) &&
                    node.output().shape() == summand.shape();
  if (!fits)
    fail(describe(node), " adds ", bias.name(), " ", value.shape(), " to ", summand.shape(),
         ": not one number for each channel");
  for (std::size_t o = 0; o < pending.bias.size(); ++o)
    pending.bias[o] += value.data<float>()[value.elements() == 1 ? 0 : o];
  pending.absorb(node.name());
  return pending;
}

const Pending& GraphWalk::layer_sum(const Node& node, Output sum) {
  const auto* pending = std::get_if<Pending>(&at(sum));
  if (!pending || !pending->is_layer() || pending->is_clamped()) fail_without_range(sum, describe(node));
  const bool rearranges_channels = std::ranges::any_of(pending->rearrangements, [&](const Rearrangement& step) {
    return step.shape.channels() != pending->shape.channels();
  });
  if (rearranges_channels || has_behind<integer::Pad>(*pending)) fail_without_range(sum, describe(node));
  return *pending;
}

GraphWalk::Value GraphWalk::normalised(const Node& node) {
  if (!values_.moves(node.input(0).node)) fail_unsupported(node);
  if (!is_folded_late(node)) return scaled_and_shifted(node, 0, scale_shift_of_batch_norm(node, values_));
  Pending pending = layer_sum(node, node.input(0));
  // y = gamma (x - mean) / sigma + beta is that layer with weights gamma / sigma times as large and a bias.
  const std::vector<double> factors = scale_shift_of_batch_norm(node, values_).factors;
  // The largest number times a negative factor is the least.
  if (has_behind<integer::MaxPool>(pending) && std::ranges::any_of(factors, [](double factor) { return factor < 0; }))
    fail_without_range(node.input(0), describe(node));
  const auto of_channel = [&](int input, std::size_t o) { return values_.value(node.input(input)).data<float>()[o]; };
  for (std::size_t o = 0; o < pending.bias.size(); ++o)
    pending.bias[o] = factors[o] * (pending.bias[o] - of_channel(3, o)) + of_channel(2, o);
  try {
    scale_channels(std::get<integer::Layer>(pending.action), factors);
  } catch (const Error& error) {
    fail(describe(node), ": ", error.what());
  }
  pending.absorb(node.name());
  return pending;
}

// Operations on tensors that have their grids.

GraphWalk::Value GraphWalk::two_operands(const Node& node) {
  const bool first = values_.moves(node.input(0).node);
  const bool second = values_.moves(node.input(1).node);
  if (node.as<layers::BiasAdd>() && second)
    fail(describe(node), " must add the same numbers for every input, adds ", node.input(1).name());
  if (first != second && (first || !node.as<layers::Div>())) return scaled_and_shifted(node, first ? 0 : 1);
  if (node.as<layers::Div>()) fail_unsupported(node);
  Pending pending = {
      .operation = node.name(), .action = integer::Add{}, .inputs = {}, .shape = {}, .tensor = node.name()};
  if (node.as<layers::Mul>()) pending.action = integer::Mul{};
  for (const int i : {0, 1}) {
    const Shape &x = node.input(i).shape(), &y = node.output().shape();
    const bool stretches_examples = node.as<layers::Mul>() && x.rank() == y.rank() && x.rank() > 1 && x[0] == y[0];
    if (x != y && !stretches_examples)
      fail(
          describe(node), " stretches ", node.input(i).name(), " ", x, " to ", y,
          "; integer models take operands of one shape, a Mul also factors with an axis of 1 for each that is stretched");
    pending.inputs.push_back(input_tensor(node, i));
  }
  if (node.as<layers::Sub>()) pending.inputs[1] = builder_.negated(pending.inputs[1]);
  pending.shape = example_of(node.output().shape());
  return pending;
}

GraphWalk::Value GraphWalk::scaled_and_shifted(const Node& node, int x) {
  const auto* pending = std::get_if<Pending>(&at(node.input(x)));
  if (pending && pending->is_layer() && (node.as<layers::Add>() || node.as<layers::BiasAdd>()))
    return biased(node, node.input(x), node.input(1 - x));
  return scaled_and_shifted(node, x, scale_shift_of(node, x, values_.value(node.input(1 - x))));
}

GraphWalk::Value GraphWalk::scaled_and_shifted(const Node& node, int x, const ScaleShift& own) {
  Value value = at(node.input(x));
  auto* pending = std::get_if<Pending>(&value);
  if (pending && !pending->scale_shift.empty() && !pending->is_clamped() && pending->rearrangements.empty()) {
    pending->scale_shift = composed(pending->scale_shift, own);
    pending->absorb(node.name());
    return value;
  }
  return Pending{.operation = node.name(),
                 .action = integer::Lookup{},
                 .inputs = {input_tensor(node, x)},
                 .shape = example_of(node.output().shape()),
                 .tensor = node.name(),
                 .scale_shift = own};
}

GraphWalk::Value GraphWalk::clamped(const Node& node) {
  const Range<float> bounds = clamp_bounds(node.op());
  Value value = at(node.input(0));
  if (const auto* blocks = std::get_if<Blocks>(&value); blocks) input_tensor(node);
  if (const int* x = std::get_if<int>(&value)) {
    // The ends themselves count, not their integers: another grid may tell a bound from the end that is nearest here.
    const Affine<float> grid = whole(builder_.tensor(*x).grid).affine;
    if (bounds.min <= grid.nudged_min && bounds.max >= grid.nudged_max) return value;
    const Shape& shape = builder_.tensor(*x).shape;
    value =
        Pending{.operation = node.name(), .action = integer::Rescale{}, .inputs = {*x}, .shape = shape, .tensor = {}};
  }
  auto& pending = std::get<Pending>(value);
  // The clamp comes before a Pad, whose zeros it would have to move.
  if (has_behind<integer::Pad>(pending) && (bounds.min > 0 || bounds.max < 0))
    fail_without_range(node.input(0), describe(node));
  pending.range = limited(pending.range, bounds);
  pending.absorb(node.name());
  return value;
}

GraphWalk::Value GraphWalk::joined(const Node& node) {
  const int rank = node.output().shape().rank();
  const auto axis = static_cast<int>(node.as<layers::Concat>()->axis);
  integer::Concat concat = {.axis = (axis < 0 ? axis + rank : axis) - 1, .multipliers = {}};
  if (concat.axis < 0) fail(describe(node), " joins batches; an integer model knows single examples only");
  Pending pending = {.operation = node.name(),
                     .action = concat,
                     .inputs = {},
                     .shape = example_of(node.output().shape()),
                     .tensor = node.name()};
  for (int i = 0; i < static_cast<int>(node.inputs().size()); ++i) pending.inputs.push_back(input_tensor(node, i));
  return pending;
}

GraphWalk::Value GraphWalk::looked_up(const Node& node) {
  const int input = input_tensor(node);
  const integer::TensorInfo& x = builder_.tensor(input);
  return Pending{.operation = node.name(),
                 .action = integer::Lookup{.function = std::string(node.type())},
                 .inputs = {input},
                 .shape = x.shape,
                 .tensor = node.name(),
                 .values = lookup_values(node, x.grid)};
}

GraphWalk::Value GraphWalk::average(const Node& node, const Window2d& window) {
  if (window.rows.window * window.columns.window > kMostPixels)
    fail(describe(node), " averages over more than ", kMostPixels, " pixels");
  return Pending{.operation = node.name(),
                 .action = integer::AveragePool{.window = window, .multipliers = {}},
                 .inputs = {input_tensor(node)},
                 .shape = example_of(node.output().shape()),
                 .tensor = node.name()};
}

GraphWalk::Value GraphWalk::mean(const Node& node) {
  const Shape& images = node.input(0).shape();
  std::vector<std::int64_t> axes = node.as<layers::Mean>()->axes;
  for (std::int64_t& axis : axes) axis += axis < 0 ? images.rank() : 0;
  std::ranges::sort(axes);
  if (images.rank() != 4 || axes != std::vector<std::int64_t>{1, 2})
    fail(describe(node), " must be over height and width of images [n, h, w, c] to have a counterpart among integers");
  return average(node, slide(images, {.window = {images[1], images[2]}, .padding = Padding::kValid}));
}

// Rearrangements, which may also wait for their grid.

GraphWalk::Value GraphWalk::rearranged(const Node& node, integer::Action action) {
  Rearrangement step = {.operation = node.name(),
                        .tensor = node.name(),
                        .action = std::move(action),
                        .shape = example_of(node.output().shape())};
  Value value = at(node.input(0));
  auto* pending = std::get_if<Pending>(&value);
  if (!pending || pending->atrous) return builder_.add(step, input_tensor(node));
  pending->rearrangements.push_back(std::move(step));
  return value;
}

GraphWalk::Value GraphWalk::max_pool(const Node& node) {
  const layers::PoolAttributes& attributes = *node.as<layers::MaxPool>();
  return rearranged(node, integer::MaxPool{layers::window_of(node.input(0).shape(), attributes)});
}

GraphWalk::Value GraphWalk::reshaped(const Node& node) {
  const Shape& from = node.input(0).shape();
  const Shape& to = node.output().shape();
  if (to.rank() == 0 || to[0] != from[0])
    fail(describe(node), " makes ", to, " of ", from, "; an integer model cannot change the batch axis");
  return rearranged(node, integer::Reshape{});
}

GraphWalk::Value GraphWalk::padded(const Node& node) {
  const auto& paddings = node.as<layers::Pad>()->paddings;
  if (paddings.front() != std::array<std::int64_t, 2>{0, 0})
    fail(describe(node), " pads the batch; an integer model knows single examples only");
  return rearranged(node, integer::Pad{{paddings.begin() + 1, paddings.end()}});
}

GraphWalk::Value GraphWalk::cut(const Node& node) {
  const Shape& from = node.input(0).shape();
  const auto cuts = node.as<layers::Slice>()->cuts(from.rank());
  if (from.rank() == 0 || node.output().shape()[0] != from[0])
    fail(describe(node), " makes ", node.output().shape(), " of ", from, "; an integer model cannot cut the batch");
  integer::Slice slice;
  for (std::size_t axis = 1; axis < static_cast<std::size_t>(from.rank()); ++axis) {
    slice.starts.push_back(cuts[axis].start);
    slice.steps.push_back(cuts[axis].step);
  }
  return rearranged(node, std::move(slice));
}

GraphWalk::Value GraphWalk::to_batch(const Node& node) {
  const layers::SpaceToBatchAttributes& attributes = *node.as<layers::SpaceToBatchNd>();
  if (node.input(0).shape().rank() != 4 || attributes.block_shape.size() != 2)
    fail(describe(node), " must deal out images [n, h, w, c] by height and width");
  return Blocks{.tensor = input_tensor(node), .atrous = {.images = node.input(0).shape(), .to_batch = attributes}};
}

GraphWalk::Value GraphWalk::to_space(const Node& node) {
  Value value = at(node.input(0));
  auto* pending = std::get_if<Pending>(&value);
  if (!pending || !pending->atrous) fail(describe(node), " does not follow a convolution of SpaceToBatchND's blocks");
  try {
    const layers::BatchToSpaceAttributes& attributes = *node.as<layers::BatchToSpaceNd>();
    std::get<integer::Layer>(pending->action).window = dilated_window(*pending->atrous, attributes);
  } catch (const Error& error) {
    fail(describe(node), " ", error.what());
  }
  pending->atrous.reset();
  pending->shape = example_of(node.output().shape());
  pending->absorb(node.name());
  return value;
}

}  // namespace miniqat::quantize
