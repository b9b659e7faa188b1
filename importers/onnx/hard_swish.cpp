#include "importers/onnx/hard_swish.h"

#include <algorithm>
#include <cmath>

namespace miniqat::importers {
namespace {

bool is_one_float(const Literal& literal) { return literal.is_real() && literal.elements() == 1; }

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

}  // namespace

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

const pb::Node* clip_to_6_behind(const Translation& t, const OnnxNode& relu) {
  const pb::Node* reader = t.only_reader(relu);
  const bool is_clip = reader != nullptr && reader->op_type() == "Clip" && reader->output_size() == 1 &&
                       reader->input(0) == relu.output(0);
  if (!is_clip) return nullptr;
  const std::optional<Bounds> bounds = bounds_of(t, OnnxNode(*reader, relu.opset()));
  return bounds && bounds->low <= 0 && bounds->high == 6 ? reader : nullptr;
}

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

}  // namespace miniqat::importers
