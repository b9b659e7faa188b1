#include <cmath>
#include <numbers>

#include "core/graph/attributes.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

void FakeQuantAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("bits", bits);
  visitor.field("narrow_range", narrow_range);
  visitor.field("symmetric", symmetric);
  visitor.field("power_of_two", power_of_two);
  visitor.field("per_channel", per_channel);
  visitor.choice("range", range, range_kind_names());
  visitor.field("ema_decay", ema_decay);
  visitor.field("delay", delay);
  visitor.field("dampening", dampening);
  visitor.field("dampening_steps", dampening_steps);
  visitor.field("is_training", is_training);
}

double FakeQuantAttributes::dampening_in(std::int64_t step) const {
  if (step >= dampening_steps) return dampening;
  return dampening *
         (1 - std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(dampening_steps))) / 2;
}

}  // namespace miniqat::quantize
