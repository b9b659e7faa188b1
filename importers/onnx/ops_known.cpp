#include <algorithm>
#include <cmath>

#include "importers/onnx/ops.h"

namespace miniqat::importers {
namespace {

template <class T>
Literal list_of(std::vector<T> values) {
  const auto extent = static_cast<std::int64_t>(values.size());
  return {.extents = {extent}, .values = std::move(values)};
}

/// What a node makes anew of sizes is short; a file cannot ask for much memory with it.
constexpr std::int64_t kMostMade = 65536;

/// Floats that are whole numbers as integers, and the reverse.
Literal cast(const OnnxNode& node, const Literal& known, bool to_real) {
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  if (to_real) {
    for (const std::int64_t value : known.integers())
      if (value < -kExact || value > kExact)
        node.refuse("turns ", value == kOpenBatch ? "the size of the batch, which is open," : "a large integer",
                    " into a float");
    return {.extents = known.extents, .values = std::vector<float>(known.integers().begin(), known.integers().end())};
  }
  for (const float value : known.reals())
    if (!(std::abs(value) <= static_cast<float>(kExact)) || std::trunc(value) != value)
      node.refuse("turns the float ", value, " into an integer; only whole ones up to 2^24 are");
  return {.extents = known.extents, .values = std::vector<std::int64_t>(known.reals().begin(), known.reals().end())};
}

/// The nearest number of half precision, of two the even one. Throws Error naming the node for what is then infinite.
float rounded_to_half(const OnnxNode& node, float value) {
  if (!std::isfinite(value)) return value;
  constexpr float kLargest = 65504;
  constexpr int kSignificantBits = 11, kSmallestExponent = -24;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int step = std::max(exponent - kSignificantBits, kSmallestExponent);
  const float rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  if (std::abs(rounded) > kLargest) node.refuse("turns ", value, " into FLOAT16, whose largest number is ", kLargest);
  return rounded;
}

}  // namespace

void import_constant(Translation& t, const OnnxNode& node) {
  t.becomes("known while reading");
  if (const pb::Constant* constant = node.constant("value")) return t.define(node, read_literal(*constant, t.folder()));
  if (node.has("value_float"))
    return t.define(node,
                    Literal{.extents = {}, .values = std::vector{static_cast<float>(node.number("value_float", 0))}});
  Literal known;
  if (node.has("value_floats"))
    known = list_of(node.numbers("value_floats"));
  else if (node.has("value_ints"))
    known = list_of(node.integers("value_ints"));
  else if (node.has("value_int"))
    known = {.extents = {}, .values = std::vector{node.integer("value_int", 0)}};
  else
    node.refuse("has neither a tensor nor numbers as its value");
  if (const std::string flaw = flaw_of(known); !flaw.empty()) node.refuse(flaw);
  t.define(node, std::move(known));
}

void import_constant_of_shape(Translation& t, const OnnxNode& node) {
  const std::vector<std::int64_t> extents = t.integers(node, 0);
  const std::int64_t elements = count_elements(extents);
  if (extents.size() > static_cast<std::size_t>(Shape::kMaxRank)) node.refuse("makes ", extents.size(), " axes");
  if (elements > kMostMade) node.refuse("makes ", extents_text(extents), ", more than ", kMostMade, " numbers");
  Literal one{.extents = {}, .values = std::vector{0.0F}};
  if (const pb::Constant* constant = node.constant("value")) one = read_literal(*constant, t.folder());
  if (one.elements() != 1) node.refuse("fills with ", extents_text(one.extents), ", not with one number");
  t.becomes("known while reading");
  t.define(node, picked(one, extents, 0, std::vector<std::int64_t>(extents.size(), 0)));
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
  if (!real && to != pb::INT64 && to != pb::INT32) node.refuse("turns constants into ONNX's type ", to);
  Literal result = known.is_real() == real ? known : cast(node, known, real);
  if (to == pb::FLOAT16) {
    std::vector<float> halves = result.reals();
    for (float& value : halves) value = rounded_to_half(node, value);
    result.values = std::move(halves);
  }
  t.define(node, std::move(result));
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

Literal known_arithmetic(const OnnxNode& node, const Literal& a, const Literal& b) {
  if (a.is_real() || b.is_real()) node.refuse("combines two constants; only integers, as of shapes, are folded");
  if (a.extents.size() > 1 || b.extents.size() > 1) node.refuse("combines constants of several axes");
  if (a.elements() == 0 || b.elements() == 0) node.refuse("combines an empty constant");
  if (a.elements() != b.elements() && a.elements() != 1 && b.elements() != 1)
    node.refuse("combines ", extents_text(a.extents), " and ", extents_text(b.extents));
  constexpr std::int64_t kMost = Shape::kMaxElements;
  const Literal& larger = a.elements() >= b.elements() && a.extents.size() >= b.extents.size() ? a : b;
  std::vector<std::int64_t> values(static_cast<std::size_t>(larger.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t x = a.integers()[a.elements() == 1 ? 0 : i], y = b.integers()[b.elements() == 1 ? 0 : i];
    if (x == kOpenBatch || y == kOpenBatch) node.refuse("computes with the size of the batch, which is open");
    if (x > kMost || x < -kMost || y > kMost || y < -kMost) node.refuse("computes with numbers that no shape has");
    if (node.type() == "Div" && y == 0) node.refuse("divides by zero");
    values[i] = node.type() == "Add" ? x + y : node.type() == "Sub" ? x - y : node.type() == "Mul" ? x * y : x / y;
  }
  return {.extents = larger.extents, .values = std::move(values)};
}

}  // namespace miniqat::importers
