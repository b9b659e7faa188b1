#include <algorithm>
#include <cmath>

#include "core/graph/source_ops.h"
#include "core/text/quote.h"
#include "importers/onnx/ops.h"
#include "layers/activations.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/softmax.h"

namespace miniqat::importers {
namespace {

// Ops that exporters write as several nodes.

/// What a Clip clips to; infinite where it has no bound.
struct Bounds {
  double low;
  double high;
};

bool is_one_float(const Literal& literal) { return literal.is_real() && literal.elements() == 1; }

/// None if a bound is not known yet, or is not one float.
std::optional<Bounds> bounds_of(const Translation& t, const OnnxNode& clip) {
  if (clip.opset() < 11) return Bounds{.low = clip.number("min", -INFINITY), .high = clip.number("max", INFINITY)};
  Bounds bounds{.low = -INFINITY, .high = INFINITY};
  for (const int input : {1, 2}) {
    if (clip.input(input).empty()) continue;
    const Literal* known = t.find_literal(clip.input(input));
    if (known == nullptr || !is_one_float(*known)) return {};
    (input == 1 ? bounds.low : bounds.high) = double{known->reals()[0]};
  }
  return bounds;
}

/// The Clip to [low, 6], with a low of at most 0, that is the only reader of this Relu: both are a Relu6. Null if there
/// is none such. PyTorch writes relu6() so.
const pb::Node* clip_to_6_behind(const Translation& t, const OnnxNode& relu) {
  const pb::Node* reader = t.only_reader(relu);
  const bool is_clip = reader != nullptr && reader->op_type() == "Clip" && reader->output_size() == 1 &&
                       reader->input(0) == relu.output(0);
  if (!is_clip) return nullptr;
  const std::optional<Bounds> bounds = bounds_of(t, OnnxNode(*reader, relu.opset()));
  return bounds && bounds->low <= 0 && bounds->high == 6 ? reader : nullptr;
}

/// Whether a tensor is a constant of one number, this one.
bool is_number(const Translation& t, const std::string& tensor, double number) {
  const Literal* known = t.find_literal(tensor);
  return known != nullptr && known->is_real() && known->elements() == 1 &&
         std::abs(double{known->reals()[0]} - number) <= 1e-6 * number;
}

/// The other input of a node with two, one of which is `tensor`; "" if it is none such.
std::string other_input(const pb::Node& node, const std::string& tensor) {
  if (node.input_size() != 2 || node.output_size() != 1) return "";
  if (node.input(0) == tensor) return node.input(1);
  return node.input(1) == tensor ? node.input(0) : "";
}

bool divides_by_6(const Translation& t, const pb::Node& node, const std::string& tensor) {
  const std::string factor = other_input(node, tensor);
  if (node.op_type() == "Mul") return is_number(t, factor, 1.0 / 6);
  return node.op_type() == "Div" && node.input(0) == tensor && is_number(t, factor, 6);
}

bool multiplies(const pb::Node& node, const std::string& tensor, const std::string& x) {
  return node.op_type() == "Mul" && other_input(node, tensor) == x;
}

/// Appends what clips the last part to [0, 6], and nothing else reads: a Clip, or a Relu and a Clip. Returns whether
/// there is such.
bool append_relu6(const Translation& t, std::vector<OnnxNode>& parts) {
  const OnnxNode last = parts.back();
  const pb::Node* next = t.only_reader(last);
  if (next == nullptr || next->output_size() != 1 || next->input(0) != last.output(0)) return false;
  const OnnxNode reader(*next, last.opset());
  if (reader.type() == "Relu") {
    const pb::Node* clip = clip_to_6_behind(t, reader);
    if (clip == nullptr) return false;
    parts.push_back(reader);
    parts.emplace_back(*clip, last.opset());
    return true;
  }
  const std::optional<Bounds> bounds = reader.type() == "Clip" ? bounds_of(t, reader) : std::nullopt;
  if (!bounds || bounds->low != 0 || bounds->high != 6) return false;
  parts.push_back(reader);
  return true;
}

/// x * relu6(x + 3) / 6 as Add, Clip (or Relu and Clip), Mul and Div (or Mul by 1/6) write it, the last two in either
/// order, if `add` begins it and nothing else reads its parts. All constants must be known. Then notes the parts, and
/// the last node as the one that becomes a HardSwish.
bool begins_hard_swish(Translation& t, const OnnxNode& add) {
  if (add.type() != "Add" || add.inputs() != 2 || add.outputs() != 1) return false;
  const bool first = is_number(t, add.input(0), 3);
  if (!first && !is_number(t, add.input(1), 3)) return false;
  const std::string& x = add.input(first ? 1 : 0);
  std::vector<OnnxNode> parts = {add};
  if (!append_relu6(t, parts)) return false;
  // The product by x and the division, in either order.
  const pb::Node* next = t.only_reader(parts.back());
  if (next == nullptr) return false;
  const bool divides_first = divides_by_6(t, *next, parts.back().output(0));
  if (!divides_first && !multiplies(*next, parts.back().output(0), x)) return false;
  parts.emplace_back(*next, add.opset());
  const pb::Node* last = t.only_reader(parts.back());
  if (last == nullptr) return false;
  const std::string& inner = parts.back().output(0);
  if (divides_first ? !multiplies(*last, inner, x) : !divides_by_6(t, *last, inner)) return false;
  t.hard_swishes()[last->output(0)] = x;
  for (const OnnxNode& part : parts) t.leave_out(part.output(0), "part of a HardSwish");
  return true;
}

/// An op that takes every element by itself, whatever the layout: build(graph, name, x).
void apply(Translation& t, const OnnxNode& node, const std::string& op, const auto& build) {
  Activation x = t.in_parts(node, 0);
  const std::string scope = t.scope_of(node);
  x.for_each_part([&](Output& part, const std::string& group, std::int64_t) {
    part = build(t.graph(), t.name(scope, group + op), part);
  });
  t.define(node, std::move(x));
}

using Binary = Output (*)(Graph&, const std::string&, Output, Output);

Binary builder_of(const std::string& type) {
  if (type == "Add") return layers::add;
  if (type == "Sub") return layers::sub;
  return type == "Mul" ? layers::mul : layers::div;
}

/// A literal of finite floats brought to x's axes: the extents that broadcast, in our order.
Literal aligned(const OnnxNode& node, Literal literal, const Activation& x) {
  if (!literal.is_real()) node.refuse("combines floats with integers");
  if (!std::ranges::all_of(literal.reals(), [](float number) { return std::isfinite(number); }))
    node.refuse("combines with a constant that is infinite or NaN");
  const std::size_t rank = x.extents.size();
  if (literal.extents.size() > rank)
    node.refuse("combines ", extents_text(x.extents), " with a constant ", extents_text(literal.extents));
  literal.extents.insert(literal.extents.begin(), rank - literal.extents.size(), 1);
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (literal.extents[axis] != 1 && (axis == 0 || literal.extents[axis] != x.extents[axis]))
      node.refuse("combines ", extents_text(x.extents), " with a constant ", extents_text(literal.extents));
  if (!x.columns.empty() && literal.elements() > 1) {
    Literal ordered = literal;
    std::vector<float> numbers = literal.reals();
    const std::vector<std::int64_t>& columns = x.columns.list();
    for (std::size_t i = 0; i < columns.size(); ++i) numbers[static_cast<std::size_t>(columns[i])] = literal.reals()[i];
    ordered.values = std::move(numbers);
    return ordered;
  }
  // Behind them the width of sequences, if they have one here.
  std::vector<std::int64_t> axes(static_cast<std::size_t>(x.output.shape().rank()), static_cast<std::int64_t>(rank));
  literal.extents.resize(axes.size(), 1);
  for (std::size_t axis = 0; axis < rank; ++axis)
    axes[static_cast<std::size_t>(x.order[axis])] = static_cast<std::int64_t>(axis);
  return transposed(literal, axes);
}

Shape shape_of(const Literal& literal) { return Shape{std::span<const std::int64_t>(literal.extents)}; }

/// Whether an aligned literal has one number for each channel.
bool is_by_channel(const Literal& literal) {
  return literal.elements() > 1 && literal.elements() == shape_of(literal).channels();
}

/// Input `known` of the node, aligned, as an operand: one number is a constant, several are a variable.
Output operand_of(Translation& t, const OnnxNode& node, int known, const Literal& literal) {
  const std::string scope = t.scope_of(node, known);
  return literal.elements() == 1
             ? constant(t.graph(), t.name(scope, "constant"), {}, {static_cast<double>(literal.reals()[0])})
             : t.variable(scope, "factors", node.input(known), shape_of(literal), literal.reals());
}

/// x with a constant or a parameter.
void combine_with_literal(Translation& t, const OnnxNode& node, int known) {
  Activation x = t.activation(node, 1 - known);
  const Literal literal = aligned(node, t.literal(node, known), x);
  const std::string scope = t.scope_of(node, known);
  if (is_by_channel(literal) && node.type() == "Add") {
    const Output biases = t.variable(scope, "biases", node.input(known), {literal.elements()}, literal.reals());
    x.output = layers::bias_add(t.graph(), t.name(scope, "BiasAdd"), x.output, biases);
    return t.define(node, std::move(x));
  }
  const Output operand = operand_of(t, node, known, literal);
  const std::string name = t.name(scope, node.type());
  x.output = known == 0 ? builder_of(node.type())(t.graph(), name, operand, x.output)
                        : builder_of(node.type())(t.graph(), name, x.output, operand);
  t.define(node, std::move(x));
}

/// Whether a Relu or a part of one computes the node's input: it has no negative numbers.
bool comes_from_relu(Translation& t, const OnnxNode& node) {
  const auto* computed = std::get_if<Activation>(&t.value(node, 0));
  if (computed == nullptr) return false;
  Activation x = *computed;
  bool all = true;
  x.for_each_part([&](const Output& part, const std::string&, std::int64_t) { all &= part.node->type() == "Relu"; });
  return all;
}

void apply_leaky(Translation& t, const OnnxNode& node, double slope) {
  if (slope == 0) return apply(t, node, "Relu", layers::relu);
  apply(t, node, "LeakyRelu", [slope](Graph& graph, const std::string& name, Output x) {
    return layers::leaky_relu(graph, name, x, {.alpha = slope});
  });
}

void import_relu(Translation& t, const OnnxNode& node) {
  const pb::Node* clip = clip_to_6_behind(t, node);
  if (clip == nullptr) return apply(t, node, "Relu", layers::relu);
  apply(t, node, "Relu6", layers::relu6);
  t.define(clip->output(0), t.value(OnnxNode(*clip, node.opset()), 0));
  t.leave_out(clip->output(0), "part of a Relu6");
}

/// Before opset 13 a Softmax is over all axes from `first` on: the only one of several numbers, or `first`.
std::int64_t axis_of_all(const OnnxNode& node, const std::vector<std::int64_t>& extents, std::int64_t first) {
  const auto is_wide = [](std::int64_t extent) { return extent != 1; };
  const auto begin = extents.begin() + first, wide = std::find_if(begin, extents.end(), is_wide);
  if (wide == extents.end()) return first;
  if (std::any_of(wide + 1, extents.end(), is_wide))
    node.refuse("is over several axes of ", extents_text(extents), " at once, as it means before opset 13");
  return wide - extents.begin();
}

}  // namespace

void import_arithmetic(Translation& t, const OnnxNode& node) {
  if (node.inputs() != 2) node.refuse("has ", counted(node.inputs(), "input"), ", needs 2");
  const auto fused = t.hard_swishes().find(node.output(0));
  if (fused != t.hard_swishes().end()) {
    Activation x = t.activation(node, fused->second);
    x.output = layers::hard_swish(t.graph(), t.name(t.scope_of(node), "HardSwish"), x.output);
    return t.define(node, std::move(x));
  }
  if (begins_hard_swish(t, node)) return t.becomes("part of a HardSwish");
  const auto* first = std::get_if<Literal>(&t.value(node, 0));
  const auto* second = std::get_if<Literal>(&t.value(node, 1));
  if (first && second) {
    t.becomes("known while reading");
    return t.define(node, known_arithmetic(node, *first, *second));
  }
  if (first || second) return combine_with_literal(t, node, first ? 0 : 1);
  Activation a = t.activation(node, 0);
  const Activation b = t.activation(node, 1);
  if (a.order != b.order || !(a.columns == b.columns))
    node.refuse("combines ", extents_text(a.extents), " and ", extents_text(b.extents),
                ", whose axes lie in another order here");
  a.output = builder_of(node.type())(t.graph(), t.name(t.scope_of(node), node.type()), a.output, b.output);
  for (std::size_t axis = 0; axis < a.extents.size(); ++axis)
    if (a.extents[axis] == 1) a.extents[axis] = b.extents[axis];
  t.define(node, std::move(a));
}

void import_clip(Translation& t, const OnnxNode& node) {
  for (const int input : {1, 2})
    if (node.opset() >= 11 && t.has(node, input)) t.literal(node, input);
  const std::optional<Bounds> bounds = bounds_of(t, node);
  if (!bounds) node.refuse("has a bound that is not one float");
  const auto [low, high] = *bounds;
  const bool ends_at_0 = low == 0 || (low < 0 && comes_from_relu(t, node));
  if (ends_at_0 && high == 6) return apply(t, node, "Relu6", layers::relu6);
  // What exporters write for no bound.
  if (low == 0 && high >= static_cast<double>(3.4e38F)) return apply(t, node, "Relu", layers::relu);
  constexpr double kMost = layers::ClipAttributes::kMost;
  const layers::ClipAttributes clip = {.low = std::max(low, -kMost), .high = std::min(high, kMost)};
  if (!(low < high)) node.refuse("clips to [", low, ", ", high, "], which leaves one number");
  if (clip.low == -kMost && clip.high == kMost) return import_identity(t, node);
  apply(t, node, "Clip",
        [clip](Graph& graph, const std::string& name, Output x) { return layers::clip(graph, name, x, clip); });
}

void import_dropout(Translation& t, const OnnxNode& node) {
  if (node.outputs() > 1 && (t.readers(node.output(1)) > 0 || t.is_output(node.output(1))))
    node.refuse("has a mask that is read or an output of the network");
  node.ignore("seed");
  double rate = node.opset() < 12 ? node.number("ratio", 0.5) : 0.5;
  if (node.opset() >= 12 && t.has(node, 1)) {
    const Literal& ratio = t.literal(node, 1);
    if (!ratio.is_real() || ratio.elements() != 1) node.refuse("has a ratio that is not one float");
    rate = ratio.reals()[0];
  }
  if (node.opset() >= 12 && t.has(node, 2)) {
    const Literal& training = t.literal(node, 2);
    if (training.is_real() || training.elements() != 1 || training.integers()[0] != 0)
      node.refuse("is in training mode; export the network for evaluation (model.eval())");
  }
  Activation x = t.activation(node, 0);
  if (rate != 0) x.output = layers::dropout(t.graph(), t.name(t.scope_of(node), "Dropout"), x.output, {.rate = rate});
  t.define(node, std::move(x));
}

void import_function(Translation& t, const OnnxNode& node) {
  if (node.type() == "Relu") return import_relu(t, node);
  if (node.type() == "Sigmoid") return apply(t, node, "Sigmoid", layers::sigmoid);
  apply(t, node, "HardSwish", layers::hard_swish);
}

void import_hard_sigmoid(Translation& t, const OnnxNode& node) {
  const double alpha = node.number("alpha", 0.2F), beta = node.number("beta", 0.5);
  if (!std::isfinite(alpha) || !std::isfinite(beta)) node.refuse("has alpha ", alpha, " and beta ", beta);
  // As of MobileNetV3.
  const bool is_sixth = std::abs(alpha - 1.0 / 6) <= 1e-6;
  if (const pb::Node* reader = t.only_reader(node); is_sixth && beta == 0.5 && reader != nullptr &&
                                                    reader->op_type() == "Mul" && reader->input_size() == 2 &&
                                                    reader->output_size() == 1) {
    const bool first = reader->input(0) == node.input(0) && reader->input(1) == node.output(0);
    const bool second = reader->input(1) == node.input(0) && reader->input(0) == node.output(0);
    if (first || second) {
      t.hard_swishes()[reader->output(0)] = node.input(0);
      t.becomes("part of a HardSwish");
      return t.define(node, t.bordered(node, 0));
    }
  }
  apply(t, node, "HardSigmoid", [alpha, beta](Graph& graph, const std::string& name, Output x) {
    return layers::hard_sigmoid(graph, name, x, {.alpha = alpha, .beta = beta});
  });
}

void import_identity(Translation& t, const OnnxNode& node) {
  t.becomes("nothing");
  t.define(node, t.value(node, 0));
}

void import_leaky_relu(Translation& t, const OnnxNode& node) { apply_leaky(t, node, node.number("alpha", 0.01F)); }

/// Several slopes, or one below 0, become Relu(x) + slope min(x, 0), exact in floats, as one of the two is 0.
void import_prelu(Translation& t, const OnnxNode& node) {
  const Literal& given = t.literal(node, 1);
  if (given.is_real() && given.elements() == 1 && given.reals()[0] >= 0)
    return apply_leaky(t, node, static_cast<double>(given.reals()[0]));
  Activation x = t.activation(node, 0);
  const Literal slope = aligned(node, given, x);
  if (slope.elements() != 1 && !is_by_channel(slope))
    node.refuse("has slopes ", extents_text(given.extents), " for ", extents_text(x.extents),
                "; one number is imported, or one for each channel");
  const std::string scope = t.scope_of(node, 1);
  Graph& graph = t.graph();
  const Output above = layers::relu(graph, t.name(scope, "Relu"), x.output);
  const Output below =
      layers::clip(graph, t.name(scope, "Clip"), x.output, {.low = -layers::ClipAttributes::kMost, .high = 0});
  const Output scaled = layers::mul(graph, t.name(scope, "Mul"), below, operand_of(t, node, 1, slope));
  x.output = layers::add(graph, t.name(scope, "Add"), above, scaled);
  t.define(node, std::move(x));
}

void import_softmax(Translation& t, const OnnxNode& node) {
  Activation x = t.activation(node, 0);
  const auto rank = static_cast<std::int64_t>(x.extents.size());
  const std::int64_t given = node.integer("axis", node.opset() < 13 ? 1 : -1);
  std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 1 || axis >= rank) node.refuse("is over axis ", given, " of ", extents_text(x.extents));
  const bool is_end = rank == 2 && t.is_end(node.output(0));
  if (is_end && !t.options().keeps_softmax) {
    t.note(
        "the final " + node.type() + " " + quote(node.name()) +
        " is left out: the network gives logits, whose loss has a softmax of its own. The order of classes is the same");
    t.becomes("nothing: left out at the end");
    return t.define(node, std::move(x));
  }
  if (node.type() != "Softmax" && !t.is_needed(node.output(0))) return t.define(node, std::move(x));
  if (node.type() != "Softmax")
    node.refuse(
        t.options().keeps_softmax
            ? "can only be left out at the end of a network for classes, whose loss has it; miniqat does not compute it"
            : "is not the end of the network over [batch, classes], the only place where it is imported");
  if (node.opset() < 13) axis = axis_of_all(node, x.extents, axis);
  if (x.order[static_cast<std::size_t>(axis)] != x.output.shape().rank() - 1)
    node.refuse("is over axis ", axis, " of ", extents_text(x.extents), "; only over the channels is it imported");
  if (is_end) t.note(concat("the final Softmax ", quote(node.name()), " stays: no loss of this task has one"));
  x.output = layers::softmax(t.graph(), t.name(t.scope_of(node), "Softmax"), x.output);
  t.define(node, std::move(x));
}

}  // namespace miniqat::importers
