#include "importers/onnx/clip.h"

#include <algorithm>
#include <cmath>

namespace miniqat::importers {
namespace {

bool is_one_float(const Literal& literal) { return literal.is_real() && literal.elements() == 1; }

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

}  // namespace miniqat::importers
