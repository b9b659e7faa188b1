#include <algorithm>
#include <array>
#include <cmath>

#include "quantize/range_kind.h"
#include "tests/fuzz/maker.h"

namespace miniqat::fuzz {

namespace {

Json quantizer_attributes(Maker& make, bool per_channel, quantize::RangeKind range) {
  return {{"bits", make.any({2, 3, 4, 5, 6, 7, 8, 8, 8, 16})},
          {"narrow_range", make.chance(3)},
          {"symmetric", make.chance(3)},
          {"per_channel", per_channel},
          {"range", quantize::traits_of(range).name},
          {"ema_decay", make.chance(2) ? 0.9 : 0.5},
          {"delay", make.any({0, 0, 0, 2})},
          {"is_training", !make.chance(5)}};
}

}  // namespace

Node& fake_quant(Maker& make, Output x) {
  const Shape& like = x.shape();
  const auto kind = static_cast<quantize::RangeKind>(make.below(quantize::range_kind_names().size()));
  const bool observes = quantize::traits_of(kind).observes;
  const bool per_channel = like.rank() > 0 && make.chance(3);
  // Depthwise filters have a range for each of the last two axes.
  const Shape shape = !per_channel                         ? Shape{}
                      : like.rank() == 4 && make.chance(3) ? Shape{like[2], like[3]}
                                                           : Shape{like.channels()};
  make.test().runs = observes ? static_cast<int>(1 + make.below(3)) : 1;
  make.test().quantization_step = make.any({0, 0, 1, 2});
  std::array<double, 4> ends = {-1.5, -0.1, 0.1, 1.5};
  if (make.chance(6)) ends = {0.1, 0.3, 0.5, 1.5};
  if (make.chance(6)) ends = {-1.5, -0.5, -0.3, -0.1};
  if (make.chance(12)) ends = {0, 0, 0, 0};
  const Json attributes = quantizer_attributes(make, per_channel, kind);
  // A range that is observed is not trained.
  const Output min = make.variable(shape, ends[0], ends[1], !observes);
  const Output max = make.variable(shape, ends[2], ends[3], !observes);
  return make.op("FakeQuant", {x, min, max}, attributes);
}

Node& fake_quant_on_ties(Maker& make) {
  const Shape shape = make.any_shape();
  const bool per_channel = shape.rank() > 0 && make.chance(3);
  const auto kind = make.chance(2) ? quantize::RangeKind::kLearned : quantize::RangeKind::kFixed;
  Json attributes = quantizer_attributes(make, per_channel, kind);
  // Powers of two for a scale, whole zero points: then halves of steps are exact.
  attributes["narrow_range"] = attributes["symmetric"] = false;
  attributes["delay"] = 0;
  const std::int64_t steps = (std::int64_t{1} << attributes["bits"].get<int>()) - 1;
  Tensor min(per_channel ? Shape{shape.channels()} : Shape{}), max(min.shape()), x(shape);
  for (std::int64_t c = 0; c < min.elements(); ++c) {
    const double scale = std::ldexp(1.0, -static_cast<int>(make.below(8)));
    const auto zero_point = static_cast<double>(make.below(static_cast<std::uint64_t>(steps) + 1));
    min.data<float>()[c] = static_cast<float>(-zero_point * scale);
    max.data<float>()[c] = static_cast<float>((static_cast<double>(steps) - zero_point) * scale);
    for (std::int64_t i = c; i < x.elements(); i += min.elements()) {
      const double place = static_cast<double>(make.below(static_cast<std::uint64_t>(2 * steps + 8))) / 2 - 2;
      const auto number = static_cast<float>((place - zero_point) * scale);
      x.data<float>()[i] = make.chance(2) ? number : std::nextafter(number, make.chance(2) ? -1e9f : 1e9f);
    }
  }
  return make.op("FakeQuant", {make.placeholder(x), make.variable(min, true), make.variable(max, true)}, attributes);
}

Node& chain(Maker& make) {
  const Shape shape = make.chance(3) ? make.rows() : make.image();
  Output x = make.input(shape, -2, 2);
  const std::int64_t c = shape.channels();
  if (make.chance(4)) x = make.op("Mul", {x, make.vector(c, -1, 2)}).output();
  if (make.chance(8)) x = make.op("Mul", {x, make.vector(c, -1, 2)}).output();
  if (make.chance(3))
    x = batch_norm(make, x).output();
  else if (make.chance(2))
    x = make.op("BiasAdd", {x, make.vector(c)}).output();
  if (make.chance(4)) x = make.op("Add", {x, make.input(shape)}).output();
  if (!make.chance(3)) x = make.op(make.chance(3) ? "Relu6" : "Relu", {x}).output();
  if (make.chance(2)) x = fake_quant(make, x).output();
  if (shape.rank() == 4 && make.chance(2)) {
    const std::int64_t h = std::min(make.any({1, 2, 3}), shape[1]), w = std::min(make.any({2, 2, 3}), shape[2]);
    x = make.op("MaxPool", {x}, {{"window", pair(h, w)}}).output();
  }
  return make.op("Square", {x});
}

}  // namespace miniqat::fuzz
