#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "quantize/affine.h"
#include "quantize/range_kind.h"

namespace miniqat::quantize {

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

  /// A training run takes the range from x; otherwise min and max are taken as they are, with gradients
  /// (range_training.h).
  bool observes_range() const { return is_training && traits_of(range).observes; }
  /// The coefficient of dampening in the step that is the `step`-th to quantize, 1 the first.
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

/// Simulates quantization: y = scale * (q - zero_point), with a straight-through gradient.
/// Inputs x [any shape] float32, min, max; output y like x. For the observing ranges min and max must come straight
/// from Variables, which a training run updates, and have no gradient. d_min and d_max exist if the range is taken as
/// it is: for "fixed", and for any kind if is_training is false. State "num_updates" (scalar) of kinds that remember
/// earlier steps counts the observations; 0 means no batch yet. With dampening, "num_dampened" counts the training
/// steps that quantized.
struct FakeQuant {
  static constexpr std::string_view kType = "FakeQuant";
  using Attributes = FakeQuantAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

struct InitialRange {
  double min = -6;
  double max = 6;
};

/// Adds `name`, with its variables `name`/min and `name`/max, trainable if the range is learned. `channel_axes` is 0
/// (per tensor), 1 or 2 and sets attributes.per_channel.
Output fake_quant(Graph& graph, const std::string& name, Output x, FakeQuantAttributes attributes,
                  InitialRange initial = {}, int channel_axes = 0);

}  // namespace miniqat::quantize
