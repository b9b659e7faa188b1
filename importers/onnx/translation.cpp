#include "importers/onnx/translation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/graph/source_ops.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "layers/parts.h"
#include "layers/reshape.h"

namespace miniqat::importers {
namespace {

/// What train takes without --batch-size.
constexpr std::int64_t kUsualBatch = 128;

/// A part of a node's name: what graph JSON allows, without '/' and '.' at its ends.
std::string plain(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    const char next = letter ? c : c == '/' || c == '.' ? '/' : '_';
    if (next != '/' || (!name.empty() && name.back() != '/')) name += next;
  }
  while (!name.empty() && name.back() == '/') name.pop_back();
  constexpr std::size_t kLongest = 200;
  if (name.size() > kLongest) name = name.substr(0, kLongest - 1) + "_";
  return name;
}

/// Whether a Transpose takes a tensor of that rank with its channels last.
bool is_transposed_to_channels_first(const pb::Node& node, int rank) {
  const std::vector<std::int64_t> axes = rank == 4 ? kImageOrder : std::vector<std::int64_t>{0, 2, 1};
  for (const pb::Attribute& attribute : node.attribute())
    if (attribute.name() == "perm") return std::ranges::equal(axes, attribute.ints());
  return false;
}

/// ONNX's axes but the batch in the order in which they lie here, without those of one number.
std::vector<std::int64_t> axes_as_they_lie(const std::vector<std::int64_t>& extents,
                                           const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 1; axis < extents.size(); ++axis)
    if (extents[axis] != 1) axes.push_back(static_cast<std::int64_t>(axis));
  std::ranges::sort(axes, {}, [&](std::int64_t axis) { return order[static_cast<std::size_t>(axis)]; });
  return axes;
}

}  // namespace

const std::vector<std::int64_t> kImageOrder = {0, 3, 1, 2};
const std::vector<std::int64_t> kSequenceOrder = {0, 3, 1};

bool is_spatial(const std::vector<std::int64_t>& order) { return order == kImageOrder || order == kSequenceOrder; }

Output padded(Graph& graph, const std::string& name, Output images, const Pads& pads) {
  const auto [top, left, bottom, right] = pads;
  return layers::pad(graph, name, images, {.paddings = {{0, 0}, {top, bottom}, {left, right}, {0, 0}}});
}

Columns::Columns(std::vector<std::int64_t> list)
    : list_(std::make_shared<const std::vector<std::int64_t>>(std::move(list))) {}

const std::vector<std::int64_t>& Columns::list() const {
  static const std::vector<std::int64_t> kNone;
  return list_ ? *list_ : kNone;
}

void Activation::for_each_part(const std::function<void(Output&, const std::string&, std::int64_t)>& body) {
  if (parts.empty()) return body(output, "", 0);
  std::int64_t first = 0;
  for (std::size_t group = 0; group < parts.size(); ++group) {
    const std::int64_t channels = parts[group].shape().channels();
    body(parts[group], concat("group", group, "/"), first);
    first += channels;
  }
}

bool is_in_order(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& order) {
  return std::ranges::is_sorted(axes_as_they_lie(extents, order));
}

bool same_layout(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& a,
                 const std::vector<std::int64_t>& b) {
  return axes_as_they_lie(extents, a) == axes_as_they_lie(extents, b);
}

Translation::Translation(const pb::Model& model, std::int64_t opset, std::filesystem::path folder,
                         const ImportOptions& options)
    : model_(model), opset_(opset), folder_(std::move(folder)), options_(options) {
  for (const pb::Node& node : model.graph().node())
    for (const std::string& input : node.input()) readers_[input].push_back(&node);
  for (const pb::Value& output : model.graph().output()) ++outputs_[output.name()];
  if (!is_output(options.output)) return;
  needed_ = {options.output};
  const auto& nodes = model.graph().node();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (std::ranges::none_of(node->output(), [&](const std::string& output) { return needed_->contains(output); }))
      continue;
    needed_->insert(node->input().begin(), node->input().end());
    // An input that is left out.
    needed_->erase("");
  }
}

const Value& Translation::named(const std::string& tensor, const std::string& who) const {
  const auto found = values_.find(tensor);
  if (found == values_.end())
    fail(who, " takes ", quote(tensor), ", which neither an input, a constant nor a node before it gives");
  return found->second;
}

const Value& Translation::value(const OnnxNode& node, int input) const {
  if (!has(node, input)) node.refuse("needs an input ", input, ", which is left out");
  return named(node.input(input), node.who());
}

const Literal& Translation::literal(const OnnxNode& node, int input) const {
  const auto* known = std::get_if<Literal>(&value(node, input));
  if (known == nullptr)
    node.refuse("needs constants as input ", input, "; the network computes ", quote(node.input(input)));
  return *known;
}

std::vector<std::int64_t> Translation::integers(const OnnxNode& node, int input) const {
  const Literal& known = literal(node, input);
  if (known.is_real() || known.extents.size() > 1)
    node.refuse("needs a list of integers as ", quote(node.input(input)));
  return known.integers();
}

Activation* Translation::computed(const std::string& tensor, const std::string& who) {
  named(tensor, who);
  auto* x = std::get_if<Activation>(&values_.at(tensor));
  if (x != nullptr && x->split) fail(who, " takes ", quote(tensor), ", but ", x->split->refusal);
  return x;
}

/// Once for all readers.
void Translation::join(Activation& x) {
  if (x.parts.empty()) return;
  const std::string scope = miniqat::scope_of(miniqat::scope_of(x.parts[0].node->name()));
  x.output = layers::concat(graph_, name(scope, "Concat"), x.parts, {.axis = 3});
  x.parts.clear();
}

const Activation& Translation::bordered(const OnnxNode& node, int input) {
  value(node, input);
  return bordered(node, node.input(input));
}

const Activation& Translation::bordered(const OnnxNode& node, const std::string& tensor) {
  Activation* x = computed(tensor, node.who());
  if (x == nullptr) node.refuse("takes the constant ", quote(tensor), " where the network's tensor is expected");
  join(*x);
  return *x;
}

Activation Translation::in_parts(const OnnxNode& node, int input) {
  const auto* x = std::get_if<Activation>(&value(node, input));
  return x != nullptr && !x->parts.empty() ? *x : activation(node, input);
}

Activation Translation::activation(const OnnxNode& node, int input) {
  return without_border(bordered(node, input), scope_of(node));
}

Activation Translation::activation(const OnnxNode& node, const std::string& tensor) {
  return without_border(bordered(node, tensor), scope_of(node));
}

const Literal* Translation::find_literal(const std::string& tensor) const {
  const auto found = values_.find(tensor);
  return found == values_.end() ? nullptr : std::get_if<Literal>(&found->second);
}

Activation Translation::without_border(Activation x, const std::string& scope) {
  if (x.border == Pads{0, 0, 0, 0}) return x;
  x.output = padded(graph_, name(scope, "Pad"), x.output, x.border);
  x.border = {0, 0, 0, 0};
  return x;
}

Activation Translation::as_images(const OnnxNode& node, Activation x) {
  if (is_spatial(x.order)) return x;
  if (x.extents.size() == 3 && same_layout(x.extents, x.order, kSequenceOrder)) {
    x.order = kSequenceOrder;
    x.output = layers::reshape(graph_, name(scope_of(node), "Reshape"), x.output,
                               {.shape = shape_of(x.extents, x.order).to_vector()});
    return x;
  }
  const bool has_rank = x.extents.size() == 3 || x.extents.size() == 4;
  node.refuse("needs images [n, c, h, w] or sequences [n, c, steps], gets ", extents_text(x.extents),
              has_rank ? " with its axes in another order" : "");
}

Activation Translation::images(const OnnxNode& node, int input) { return as_images(node, activation(node, input)); }

void Translation::define(const std::string& name, Value value) {
  if (name.empty()) fail("a tensor of the model has no name");
  if (!values_.emplace(name, std::move(value)).second) fail("the tensor ", quote(name), " is made twice");
}

bool Translation::is_end(const std::string& tensor) const {
  const auto found = readers_.find(tensor);
  return found == readers_.end() || std::ranges::none_of(found->second, [&](const pb::Node* node) {
           return std::ranges::any_of(
               node->output(), [&](const std::string& output) { return is_needed(output) == is_needed(tensor); });
         });
}

int Translation::readers(const std::string& tensor) const {
  const auto found = readers_.find(tensor);
  return found == readers_.end() ? 0 : static_cast<int>(found->second.size());
}

const pb::Node* Translation::only_reader(const OnnxNode& node) const {
  const auto found = readers_.find(node.output(0));
  const bool one = found != readers_.end() && found->second.size() == 1 && !outputs_.contains(node.output(0));
  return one ? found->second[0] : nullptr;
}

std::string Translation::scope_of(const OnnxNode& node, int parameter) const {
  std::string_view source = parameter >= 0 ? std::string_view(node.input(parameter)) : std::string_view();
  const std::size_t dot = source.rfind('.');
  // "layer1.0.conv1.weight"; names that the exporter makes up, as "onnx::Conv_123", say nothing.
  if (source.find(':') != std::string_view::npos || dot == std::string_view::npos)
    source = node.name();
  else
    source = source.substr(0, dot);
  const std::string scope = plain(source);
  return scope.empty() ? plain(node.type()) : scope;
}

std::string Translation::name(const std::string& scope, const std::string& op) {
  return names_.emplace_back(graph_.unique_name(scope + "/" + op));
}

Output Translation::variable(const std::string& scope, const std::string& suffix, const std::string& source,
                             const Shape& shape, std::vector<float> numbers, bool trainable) {
  if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); }))
    fail("the numbers of ", quote(source), " are not all finite");
  const Tensor value = Tensor::from<float>(shape, numbers);
  // Two batch norms that updated the same statistics could not be trained.
  const auto found = trainable ? shared_.find({source, suffix}) : shared_.end();
  if (found != shared_.end() && found->second.shape() == shape) {
    const Tensor& other = variables_.at(found->second.node->name());
    if (std::ranges::equal(other.values<float>(), value.values<float>())) return found->second;
  }
  const Output output = miniqat::variable(graph_, name(scope, suffix), shape, {}, trainable);
  if (trainable) shared_[{source, suffix}] = output;
  variables_.emplace(output.node->name(), value);
  return output;
}

Shape Translation::shape_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& order) const {
  std::vector<std::int64_t> ours(static_cast<std::size_t>(std::ranges::max(order)) + 1, 1);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) ours[static_cast<std::size_t>(order[axis])] = extents[axis];
  ours[0] = batch_;
  return Shape{std::span<const std::int64_t>(ours)};
}

std::vector<std::int64_t> Translation::integers_to_come(const std::string& tensor) const {
  const auto integers_of = [](const Literal& known) {
    return known.is_real() ? std::vector<std::int64_t>() : known.integers();
  };
  if (const Literal* known = find_literal(tensor)) return integers_of(*known);
  const auto& nodes = model_.graph().node();
  const auto made = std::ranges::find_if(nodes, [&](const pb::Node& node) {
    return node.op_type() == "Constant" && node.output_size() == 1 && node.output(0) == tensor;
  });
  if (made == nodes.end()) return {};
  const OnnxNode node(*made, opset_);
  const pb::Constant* value = node.constant("value");
  return value == nullptr ? node.integers("value_ints") : integers_of(read_literal(*value, folder_));
}

bool Translation::moves_one_channel(const pb::Node& node, const std::vector<std::int64_t>& extents) const {
  const bool reshapes = node.op_type() == "Reshape" && node.input_size() > 1 && extents.back() == 1;
  const std::vector<std::int64_t> wanted = reshapes ? integers_to_come(node.input(1)) : std::vector<std::int64_t>();
  return wanted.size() == extents.size() && wanted[1] == 1 &&
         std::equal(wanted.begin() + 2, wanted.end(), extents.begin() + 1);
}

bool Translation::is_turned(const std::string& tensor, const std::vector<std::int64_t>& extents) const {
  const auto found = readers_.find(tensor);
  return found != readers_.end() && std::ranges::all_of(found->second, [&](const pb::Node* node) {
           if (node->op_type() == "Transpose")
             return is_transposed_to_channels_first(*node, static_cast<int>(extents.size()));
           if (moves_one_channel(*node, extents)) return true;
           const bool adds_an_axis =
               extents.size() == 3 && (node->op_type() == "Reshape" || node->op_type() == "Unsqueeze");
           if (!adds_an_axis || node->output_size() != 1) return false;
           // Steps that become pixels first.
           const std::int64_t steps = extents[1], channels = extents[2];
           return std::ranges::any_of(std::vector<std::vector<std::int64_t>>{{extents[0], steps, 1, channels},
                                                                             {extents[0], 1, steps, channels}},
                                      [&](const std::vector<std::int64_t>& images) {
                                        return moves_one_channel(*node, images) || is_turned(node->output(0), images);
                                      });
         });
}

bool Translation::has_our_order(const pb::Value& input) const {
  std::vector<std::int64_t> extents;
  for (const pb::Dimension& dimension : input.type().tensor_type().shape().dim())
    extents.push_back(dimension.dim_value());
  // exporters/onnx/onnx_float.h turns images only.
  if (extents.size() == 3 && is_of_miniqat()) return true;
  return extents.size() == 2 || ((extents.size() == 3 || extents.size() == 4) && is_turned(input.name(), extents));
}

std::vector<std::int64_t> Translation::extents_of_input(const pb::Value& input, const std::string& who,
                                                        bool channels_last) const {
  const pb::TensorType& type = input.type().tensor_type();
  if (type.elem_type() != pb::FLOAT) fail(who, " is not of float32 numbers");
  const int rank = type.shape().dim_size();
  const std::size_t first_of_size = channels_last ? 1 : 2, sizes = rank == 3 ? 1 : rank == 4 ? 2 : 0;
  std::vector<std::int64_t> extents;
  for (const pb::Dimension& dimension : type.shape().dim()) {
    const std::size_t axis = extents.size();
    const bool is_size = axis >= first_of_size && axis < first_of_size + sizes;
    const bool open = !dimension.has_dim_value() || dimension.dim_value() <= 0;
    const bool keeps = !open && options_.keeps_size;
    const std::int64_t asked = axis == first_of_size ? options_.height : options_.width;
    const std::int64_t given = is_size && !keeps ? asked : 0;
    if (!open && given > 0 && given != dimension.dim_value())
      fail(who, " has ", dimension.dim_value(), " pixels along axis ", axis, ", not ", given);
    if (open && given == 0 && axis > 0)
      fail(who, " leaves the size of axis ", axis, " open; only the batch, axis 0, may be. Export with one size",
           is_size ? ", or give height and width: --image-size HxW" : "",
           is_size && rank == 3 ? " (of sequences STEPSx1)" : "");
    if (given > 0) {
      extents.push_back(given);
      continue;
    }
    if (axis > 0 && dimension.dim_value() > Shape::kMaxElements) fail(who, " is too large");
    extents.push_back(open ? kOpenBatch : dimension.dim_value());
  }
  if (extents.size() < 2 || extents.size() > 4)
    fail(who, " is ", extents_text(extents),
         "; images [n, c, h, w], sequences [n, c, steps] or rows [n, features] are imported");
  return extents;
}

void Translation::add_input(const pb::Value& input) {
  const std::string who = concat("the input ", quote(input.name()));
  // Networks from TensorFlow take [n, h, w, c] or [n, steps, c] and turn it around first.
  const bool ours = has_our_order(input);
  const std::vector<std::int64_t> extents = extents_of_input(input, who, ours);
  const int rank = static_cast<int>(extents.size());
  channels_last_ = channels_last_ || (ours && rank > 2);
  if (has_batch_ && extents[0] != onnx_batch_) fail(who, " has another batch than the first input");
  has_batch_ = true;
  onnx_batch_ = extents[0];
  const std::int64_t usual = onnx_batch_ == kOpenBatch ? kUsualBatch : onnx_batch_;
  batch_ = options_.batch_size > 0 ? options_.batch_size : usual;
  Activation x{.extents = extents, .order = {0, 1, 2, 3}};
  x.order.resize(extents.size());
  if (rank == 4 && !ours) x.order = kImageOrder;
  if (rank == 3 && !ours) x.order = {0, 2, 1};
  const std::string wish = plain(input.name());
  const std::string name = graph_.unique_name(wish.empty() ? "input" : wish);
  if (name != input.name()) note(concat(who, " is called ", quote(name), " in the graph"));
  x.output = placeholder(graph_, name, shape_of(x.extents, x.order));
  if (rank == 3) {
    x.order = ours ? std::vector<std::int64_t>{0, 1, 3} : kSequenceOrder;
    x.output = layers::reshape(graph_, graph_.unique_name(name + "/steps"), x.output,
                               {.shape = shape_of(x.extents, x.order).to_vector()});
  }
  define(input.name(), std::move(x));
}

void Translation::add_inputs() {
  const pb::Graph& graph = model_.graph();
  if (graph.sparse_initializer_size() > 0) fail("has sparse constants, which are not imported");
  for (const pb::Constant& constant : graph.initializer()) define(constant.name(), read_literal(constant, folder_));
  int inputs = 0;
  for (const pb::Value& input : graph.input()) {
    // Before IR version 4 constants are inputs, too.
    if (values_.contains(input.name()) && std::holds_alternative<Literal>(values_.at(input.name()))) continue;
    add_input(input);
    ++inputs;
  }
  if (inputs == 0) fail("has no input");
}

ImportedNode Translation::translate(const OnnxNode& node, Translate op) {
  becomes_.clear();
  names_.clear();
  if (const auto left = node.outputs() == 1 ? left_out_.find(node.output(0)) : left_out_.end(); left != left_out_.end())
    return {node.type(), node.name(), left->second};
  if (node.outputs() == 0) node.refuse("has no output");
  try {
    op(*this, node);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with(node.who())) throw;
    node.refuse("cannot be built: ", text);
  }
  node.require_all_known();
  std::vector<std::string> made;
  for (const std::string& name : names_) {
    const Node& made_node = graph_.at(name);
    if (made_node.as<Variable>() == nullptr && made_node.as<Constant>() == nullptr) made.push_back(name);
  }
  if (!becomes_.empty()) return {node.type(), node.name(), becomes_};
  return {node.type(), node.name(), made.empty() ? "nothing" : joined(made), made};
}

bool Translation::is_sequence(const Activation& x) const {
  if (x.order != kSequenceOrder) return false;
  return !is_in_order(x.extents, x.order) || (x.extents[2] > 1 && !channels_last_ && !is_of_miniqat());
}

Activation Translation::output_of(const std::string& tensor, const std::string& who) {
  Activation* x = computed(tensor, "the graph's outputs");
  if (x == nullptr) fail(who, " is a constant");
  if (!x->columns.empty())
    fail(who, " is a flattened image, whose numbers lie in another order here; end the network before that");
  if (!is_spatial(x->order) && !is_in_order(x->extents, x->order))
    fail(who, " is ", extents_text(x->extents),
         " and has its axes in another order here; end the network before the Transpose");
  join(*x);
  std::string scope = plain(tensor);
  if (scope.empty()) scope = "output";
  Activation y = without_border(*x, scope);
  if (x->order == kImageOrder) return y;
  // The file's shape, but for sequences, which are [n, steps, c].
  std::vector<std::int64_t> order(x->extents.size());
  std::iota(order.begin(), order.end(), 0);
  if (is_sequence(*x)) order = {0, 2, 1};
  if (const Shape shape = shape_of(x->extents, order); y.output.shape() != shape)
    y.output = layers::reshape(graph_, name(scope, order.size() == 3 ? "steps" : "Reshape"), y.output,
                               {.shape = shape.to_vector()});
  return y;
}

void Translation::set_outputs() {
  std::vector<Output> outputs;
  std::map<const Node*, std::string> names;
  for (const pb::Value& output : model_.graph().output()) {
    const std::string who = concat("the output ", quote(output.name()));
    const Activation computed = output_of(output.name(), who);
    const auto [first, is_new] = names.emplace(computed.output.node, output.name());
    const bool is_steps = is_sequence(computed);
    if ((is_new || first->second != output.name()) && (computed.order == kImageOrder || is_steps))
      note(who + (is_steps ? " is [n, steps, c] in the graph" : " is [n, h, w, c] in the graph"));
    if (first->second != output.name()) note(who + " is the same tensor as " + quote(first->second) + " in the graph");
    outputs.push_back(computed.output);
  }
  if (outputs.empty()) fail("has no output");
  graph_.set_outputs(outputs);
}

void Translation::add_nodes(std::span<const ImportedOp> table) {
  const auto& protos = model_.graph().node();
  nodes_.resize(static_cast<std::size_t>(protos.size()));
  // Several nodes may be one op here, whatever the place of their constants among them.
  for (const bool constants : {true, false})
    for (int i = 0; i < protos.size(); ++i) {
      if ((protos[i].op_type() == "Constant") != constants) continue;
      const OnnxNode node(protos[i], opset_);
      const auto op = std::ranges::find(table, node.type(), &ImportedOp::type);
      nodes_[static_cast<std::size_t>(i)] = translate(node, op->translate);
    }
  set_outputs();
}

ImportedModel Translation::finish() {
  ImportReport report{.source = {},
                      .producer = model_.producer_name(),
                      .opset = opset_,
                      .nodes = std::move(nodes_),
                      .notes = std::move(notes_)};
  std::vector<std::string> names;
  for (const pb::Value& output : model_.graph().output()) names.push_back(output.name());
  return {.graph = std::move(graph_),
          .variables = std::move(variables_),
          .report = std::move(report),
          .output_names = std::move(names)};
}

}  // namespace miniqat::importers
