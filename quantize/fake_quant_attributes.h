#pragma once

#include <cstdint>

#include "core/graph/attributes.h"
#include "quantize/affine.h"
#include "quantize/range_kind.h"

namespace miniqat::quantize {

/// What FakeQuant (quantize/fake_quant.h) can be told.
struct FakeQuantAttributes {
  /// 2..16.
  std::int64_t bits = 8;
  /// Integers 1..2^bits-1 instead of 0..2^bits-1.
  bool narrow_range = false;
  bool symmetric = false;
  /// Scales are powers of two.
  bool power_of_two = false;
  /// One range per channel: min and max then have the shape of x's last axis, or of its last two (depthwise filters);
  /// otherwise they are scalars.
  bool per_channel = false;
  RangeKind range = RangeKind::kMovingAverage;
  double ema_decay = 0.999;
  /// Quantizes in training steps whose quantization step counter is >= delay. Before that, too, an observed range is
  /// observed; a learned one stays.
  std::int64_t delay = 0;
  /// Oscillation dampening (Nagel et al. 2022, "Overcoming Oscillations in Quantization-Aware Training", eq. 9): adds
  /// dampening * ||y - clip(x)||^2 to the loss, with y held, so that x is pulled towards the middle of its bin:
  /// 2 dampening (x - y) is added to d_x inside the range, nothing outside, nothing to the range. Neither y nor the
  /// loss that is reported changes.
  double dampening = 0;
  /// The coefficient grows to its value from 0, on a cosine, over this number of quantizing steps; 0: it has its value
  /// at once.
  std::int64_t dampening_steps = 0;
  /// False in evaluation graphs: never observes, always quantizes.
  bool is_training = true;

  /// Throws Error if one of them is out of its bounds.
  void check() const;
  /// A training run takes the range from x; otherwise min and max are taken as they are, with gradients
  /// (range_training.h).
  bool observes_range() const { return is_training && traits_of(range).observes; }
  /// Whether training steps add dampening to gradients, and its coefficient in the step that is the `step`-th to
  /// quantize, 1 the first.
  bool dampens() const { return is_training && dampening > 0; }
  double dampening_in(std::int64_t step) const;
  /// Whether a run quantizes, with the quantization step counter at that value.
  bool quantizes(std::int64_t quantization_step) const { return !is_training || quantization_step >= delay; }
  GridOptions grid_options() const { return {static_cast<int>(bits), narrow_range, symmetric, power_of_two}; }
  void visit(AttributeVisitor& visitor) {
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
};

}  // namespace miniqat::quantize
