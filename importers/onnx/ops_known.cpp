#include <algorithm>

#include "importers/onnx/ops.h"

namespace miniqat::importers {
namespace {

Literal list_of(std::vector<std::int64_t> values) {
  const auto extent = static_cast<std::int64_t>(values.size());
  return {.extents = {extent}, .values = std::move(values)};
}

}  // namespace

void import_constant(Translation& t, const OnnxNode& node) {
  t.becomes("known while reading");
  if (const pb::Constant* constant = node.constant("value")) return t.define(node, read_literal(*constant, t.folder()));
  if (node.has("value_int"))
    return t.define(node, Literal{.extents = {}, .values = std::vector{node.integer("value_int", 0)}});
  if (node.has("value_ints")) return t.define(node, list_of(node.integers("value_ints")));
  if (node.has("value_float"))
    return t.define(node,
                    Literal{.extents = {}, .values = std::vector{static_cast<float>(node.number("value_float", 0))}});
  node.refuse("has neither a tensor nor numbers as its value");
}

void import_shape(Translation& t, const OnnxNode& node) {
  const Value& value = t.value(node, 0);
  const auto* known = std::get_if<Literal>(&value);
  if (node.has("start") || node.has("end")) node.refuse("takes a part of a shape (start, end), which is not imported");
  t.becomes("known while reading");
  t.define(node, list_of(known ? known->extents : std::get<Activation>(value).extents));
}

void import_cast(Translation& t, const OnnxNode& node) {
  const std::int64_t to = node.integer("to", 0);
  const bool real = to == pb::FLOAT || to == pb::DOUBLE || to == pb::FLOAT16;
  const Value& value = t.value(node, 0);
  t.becomes("nothing");
  if (std::holds_alternative<Activation>(value)) {
    if (to != pb::FLOAT) node.refuse("turns what the network computes into another type");
    return t.define(node, value);
  }
  const auto& known = std::get<Literal>(value);
  if (known.is_real() != real || (!real && to != pb::INT64 && to != pb::INT32))
    node.refuse("turns floats into integers, or the reverse");
  t.define(node, known);
}

void import_gather(Translation& t, const OnnxNode& node) {
  if (std::holds_alternative<Activation>(t.value(node, 0)))
    node.refuse("picks out of what the network computes; only out of a shape is it imported");
  const std::vector<std::int64_t> list = t.integers(node, 0);
  if (node.integer("axis", 0) != 0) node.refuse("has an axis other than 0");
  const auto size = static_cast<std::int64_t>(list.size());
  std::vector<std::int64_t> picked;
  for (const std::int64_t index : t.integers(node, 1)) {
    if (index < -size || index >= size) node.refuse("picks number ", index, " of ", size);
    picked.push_back(list[static_cast<std::size_t>(index < 0 ? index + size : index)]);
  }
  t.becomes("known while reading");
  t.define(node, Literal{.extents = t.literal(node, 1).extents, .values = std::move(picked)});
}

void import_slice(Translation& t, const OnnxNode& node) {
  if (std::holds_alternative<Activation>(t.value(node, 0)))
    node.refuse("cuts what the network computes; only of a shape is it imported");
  const std::vector<std::int64_t> list = t.integers(node, 0);
  const bool as_inputs = node.opset() >= 10;
  const auto one = [&](int input, const char* attribute, std::int64_t otherwise) {
    const bool given = as_inputs ? t.has(node, input) : node.has(attribute);
    if (!given) return otherwise;
    const std::vector<std::int64_t> numbers = as_inputs ? t.integers(node, input) : node.integers(attribute);
    if (numbers.size() != 1) node.refuse("cuts along ", numbers.size(), " axes of a list");
    return numbers[0];
  };
  const auto size = static_cast<std::int64_t>(list.size());
  const auto place = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? std::max(index, -size) + size : index, 0, size);
  };
  const std::int64_t start = place(one(1, "starts", 0)), end = place(one(2, "ends", size));
  if (const std::int64_t axis = one(3, "axes", 0); axis != 0 && axis != -1)
    node.refuse("cuts along an axis that a list does not have");
  if (as_inputs && one(4, "steps", 1) != 1) node.refuse("has steps other than 1");
  t.becomes("known while reading");
  t.define(node, list_of({list.begin() + start, list.begin() + std::max(start, end)}));
}

Literal known_arithmetic(const OnnxNode& node, const Literal& a, const Literal& b) {
  if (a.is_real() || b.is_real()) node.refuse("combines two constants; only integers, as of shapes, are folded");
  if (a.extents.size() > 1 || b.extents.size() > 1) node.refuse("combines constants of several axes");
  if (a.elements() != b.elements() && a.elements() != 1 && b.elements() != 1)
    node.refuse("combines ", extents_text(a.extents), " and ", extents_text(b.extents));
  constexpr std::int64_t kMost = Shape::kMaxElements;
  Literal result = a.elements() >= b.elements() && a.extents.size() >= b.extents.size() ? a : b;
  auto& values = std::get<std::vector<std::int64_t>>(result.values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t x = a.integers()[a.elements() == 1 ? 0 : i], y = b.integers()[b.elements() == 1 ? 0 : i];
    if (x == kOpenBatch || y == kOpenBatch) node.refuse("computes with the size of the batch, which is open");
    if (x > kMost || x < -kMost || y > kMost || y < -kMost) node.refuse("computes with numbers that no shape has");
    if (node.type() == "Div" && y == 0) node.refuse("divides by zero");
    values[i] = node.type() == "Add" ? x + y : node.type() == "Sub" ? x - y : node.type() == "Mul" ? x * y : x / y;
  }
  return result;
}

}  // namespace miniqat::importers
