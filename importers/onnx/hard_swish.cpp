#include "importers/onnx/hard_swish.h"

#include <cmath>

namespace miniqat::importers {
namespace {

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

bool is_clip_0_6(const Translation& t, const OnnxNode& clip) {
  if (clip.opset() < 11) return clip.number("min", -INFINITY) == 0 && clip.number("max", INFINITY) == 6;
  return is_number(t, clip.input(1), 0) && is_number(t, clip.input(2), 6);
}

bool divides_by_6(const Translation& t, const pb::Node& node, const std::string& tensor) {
  const std::string factor = other_input(node, tensor);
  if (node.op_type() == "Mul") return is_number(t, factor, 1.0 / 6);
  return node.op_type() == "Div" && node.input(0) == tensor && is_number(t, factor, 6);
}

}  // namespace

bool begins_hard_swish(Translation& t, const OnnxNode& add) {
  if (add.type() != "Add" || add.inputs() != 2 || add.outputs() != 1) return false;
  const bool first = is_number(t, add.input(0), 3);
  if (!first && !is_number(t, add.input(1), 3)) return false;
  const std::string& x = add.input(first ? 1 : 0);
  const pb::Node* clip = t.only_reader(add);
  if (clip == nullptr || clip->op_type() != "Clip" || clip->output_size() != 1) return false;
  const OnnxNode clipped(*clip, add.opset());
  const pb::Node* mul = t.only_reader(clipped);
  if (!is_clip_0_6(t, clipped) || mul == nullptr || mul->op_type() != "Mul") return false;
  if (other_input(*mul, clipped.output(0)) != x) return false;
  const OnnxNode product(*mul, add.opset());
  const pb::Node* last = t.only_reader(product);
  if (last == nullptr || !divides_by_6(t, *last, product.output(0))) return false;
  t.hard_swishes()[last->output(0)] = x;
  for (const OnnxNode& part : {add, clipped, product}) t.leave_out(part.output(0), "part of a HardSwish");
  return true;
}

}  // namespace miniqat::importers
