#include "quantize/fake_quant_attributes.h"

#include <cmath>
#include <numbers>

#include "core/text/error.h"

namespace miniqat::quantize {

void FakeQuantAttributes::check() const {
  if (bits < 2 || bits > 16) fail("bits must be 2..16, is ", bits);
  if (!(ema_decay >= 0 && ema_decay < 1)) fail("ema_decay must be in [0, 1), is ", exact(ema_decay));
  if (delay < 0) fail("delay must not be negative, is ", delay);
  if (!(dampening >= 0 && std::isfinite(dampening))) fail("dampening must be at least 0 and finite, is ", dampening);
  if (dampening_steps < 0) fail("dampening_steps must not be negative, is ", dampening_steps);
}

double FakeQuantAttributes::dampening_in(std::int64_t step) const {
  if (step >= dampening_steps) return dampening;
  return dampening *
         (1 - std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(dampening_steps))) / 2;
}

}  // namespace miniqat::quantize
