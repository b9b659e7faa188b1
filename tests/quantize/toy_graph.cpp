#include "tests/quantize/toy_graph.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "core/graph/registry.h"
#include "core/text/error.h"

namespace miniqat::testing {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// What is between the marks of a text: "a | b" at "|" gives "a" and "b", without blanks around them.
Names pieces_of(const std::string& text, const std::string& mark) {
  Names parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + mark.size()) {
    end = text.find(mark, begin);
    parts.push_back(trimmed(text.substr(begin, end - begin)));
  }
  return parts;
}

/// Words between blanks.
Names words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// "[2,3]" at the beginning of a text, which it takes away.
Shape take_shape(std::string& text) {
  const std::size_t end = text.find(']');
  std::vector<std::int64_t> extents;
  for (const std::string& extent : pieces_of(text.substr(1, end - 1), ","))
    if (!extent.empty()) extents.push_back(std::stoll(extent));
  text.erase(0, end + 1);
  return Shape(extents);
}

/// All that can be said of a quantizer in a word.
Names settings_of(const Graph& graph, const Node& node) {
  const quantize::FakeQuantAttributes& its = *node.as<quantize::FakeQuant>();
  Names words = {std::to_string(its.bits),
                 std::string(traits_of(its.range).name),
                 its.narrow_range ? "narrow" : "wide",
                 its.symmetric ? "symmetric" : "asymmetric",
                 its.per_channel ? "per_channel" : "per_tensor",
                 its.power_of_two ? "power_of_two" : "any_scale",
                 its.is_training ? "training" : "evaluating",
                 concat("delay=", its.delay),
                 concat("decay=", its.ema_decay)};
  if (const Node* low = graph.find(node.name() + "/min"); low != nullptr && low->as<Variable>() != nullptr) {
    const VariableAttributes& high = *graph.at(node.name() + "/max").as<Variable>();
    words.push_back(concat("from=", low->as<Variable>()->initializer.value));
    words.push_back(concat("to=", high.initializer.value));
    words.push_back(concat("ranges=", low->output().shape()));
  }
  return words;
}

std::string readers_of(const Graph& graph, const Node& node) {
  std::string text;
  for (const Use& use : node.uses())
    text += concat(text.empty() ? "" : " ", use.node->name(), use.input == 0 ? "" : concat(":", use.input));
  if (std::ranges::count(graph.outputs(), node.output()) > 0) text += text.empty() ? "output" : " output";
  return text;
}

}  // namespace

ToyGraph::ToyGraph(const std::string& chains, const ToySizes& sizes) : sizes(sizes) {
  layers::register_ops();
  quantize::register_ops();
  for (const std::string& chain : pieces_of(chains, ";")) {
    const Names steps = pieces_of(chain, "|");
    Output x = tensor(steps[0]);
    for (std::size_t i = 1; i < steps.size(); ++i) x = step(x, words_of(steps[i]));
  }
}

Output ToyGraph::tensor(const std::string& text) {
  std::string name = text;
  const char kind = text.empty() ? ' ' : text[0];
  if (kind == '=' || kind == '?') name.erase(0, 1);
  if (!name.starts_with('[')) return graph.find(text.substr(0, text.find(':'))) ? graph.output_at(text) : images(text);
  const Shape shape = take_shape(name);
  if (kind == '=') return layers::constant(graph, name, shape, {0.5});
  return kind == '?' ? layers::placeholder(graph, name, shape) : layers::variable(graph, name, shape);
}

/// A step that names a scope; undefined if it is none.
Output ToyGraph::layer(Output x, const Names& words) {
  const std::string &kind = words[0], &scope = words.at(1);
  const auto weights = [&](const Shape& shape) { return layers::variable(graph, scope + "/weights", shape); };
  if (kind.starts_with("conv")) {
    const Output y = words.size() > 2 ? conv(scope, x, tensor(words[2])) : conv(scope, x);
    if (kind == "conv") return y;
    return kind == "conv_bias" ? bias(scope, y) : layers::relu(graph, scope + "/Relu", bias(scope, y));
  }
  if (kind == "depthwise") {
    const Output filters = weights({sizes.filter, sizes.filter, x.shape().channels(), 1});
    return layers::depthwise_conv2d(graph, scope + "/DepthwiseConv2d", x, filters);
  }
  if (kind == "dense")
    return layers::matmul(graph, scope + "/MatMul", x, weights({x.shape().channels(), std::stoll(words.at(2))}));
  if (kind == "bias") return bias(scope, x);
  if (kind == "still_batch_norm") return batch_norm(scope, x, false);
  return kind == "batch_norm" ? batch_norm(scope, x, true, words.size() > 2 ? words[2] : "") : Output();
}

Output ToyGraph::step(Output x, const Names& words) {
  const std::string& type = words.at(0);
  if (type == "output") {
    std::vector<Output> outputs = graph.outputs();
    outputs.push_back(x);
    graph.set_outputs(outputs);
    return x;
  }
  if (type == "loss")
    return layers::softmax_cross_entropy(graph, x, layers::placeholder(graph, "labels", {x.shape()[0]}, DType::kInt32));
  if (const Output y = layer(x, words); y.node != nullptr) return y;
  const std::string& name = words.at(1);
  const bool more = words.size() > 2;
  if (type == "Mean") return layers::mean(graph, name, x, {.axes = {1, 2}});
  if (type == "Pad") return layers::pad(graph, name, x, {.paddings = {{0, 0}, {1, 1}, {1, 1}, {0, 0}}});
  if (type == "PadChannels") return layers::pad(graph, name, x, {.paddings = {{0, 0}, {0, 0}, {0, 0}, {0, 3}}});
  if (type == "SpaceToBatchND") return layers::space_to_batch(graph, name, x, {.block_shape = {2, 2}});
  if (type == "BatchToSpaceND") return layers::batch_to_space(graph, name, x, {.block_shape = {2, 2}});
  if (type == "MaxPool" && more) return layers::max_pool(graph, name, x, {.window = {1, 1}});
  if (type == "AvgPool" && more) return layers::avg_pool(graph, name, x, {.window = {1, 1}});
  if (type == "MatMulTransposed") return layers::matmul(graph, name, x, tensor(words.at(2)), {.transpose_b = true});
  if (type == "FakeQuant") return quantize::fake_quant(graph, name, x, {.bits = std::stoll(words.at(2))});
  if (type == "Reshape") {
    layers::ReshapeAttributes attributes;
    for (std::size_t i = 2; i < words.size(); ++i) attributes.shape.push_back(std::stoll(words[i]));
    return layers::reshape(graph, name, x, attributes);
  }
  std::vector<Output> inputs = {x};
  for (std::size_t i = 2; i < words.size(); ++i) inputs.push_back(tensor(words[i]));
  return graph.add(name, make_op(type), inputs).output();
}

std::string quantizer_in(const std::string& line) {
  const Names path = pieces_of(pieces_of(line, ": ")[0], " > ");
  return path[path.size() == 1 ? 0 : 1];
}

std::string described(const Graph& graph, const std::string& line) {
  const Names said = pieces_of(line, ": ");
  const Names path = pieces_of(said[0], " > ");
  const std::string name = quantizer_in(line);
  const Node* node = graph.find(name);
  if (node == nullptr || node->as<quantize::FakeQuant>() == nullptr) return "no quantizer " + name;
  std::string text = path.size() == 1 ? name : concat(node->input(0).name(), " > ", name);
  if (path.size() == 3) text += " > " + readers_of(graph, *node);
  if (said.size() == 1) return text;
  const Names settings = settings_of(graph, *node);
  text += ":";
  for (const std::string& word : words_of(said[1]))
    text += " " + (std::ranges::count(settings, word) > 0 ? word : "not " + word);
  if (text == line) return text;
  for (const std::string& setting : settings) text += " [" + setting + "]";
  return text;
}

Names described(const Graph& graph, const Names& lines) {
  Names found;
  for (const std::string& line : lines) found.push_back(described(graph, line));
  return found;
}

}  // namespace miniqat::testing
