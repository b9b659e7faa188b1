#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace miniqat::quantize {

/// Where a quantizer's range comes from. Every range is widened to contain 0.
enum class RangeKind {
  /// The min and max inputs as they are; these may then be any tensors, also trainable variables.
  kFixed,
  /// Minimum and maximum of the tensor in this step (weights).
  kLastValue,
  /// Zero-debiased exponential moving average of the batches' minima and maxima (activations).
  kMovingAverage,
  /// Trained with the weights, by the gradient of a learned step size (range_training.h).
  kLearned,
  /// Minimum and maximum of all batches so far, the first one's included and the initial range not (activations). The
  /// range never shrinks.
  kAllValues,
};

/// A row of the table of kinds (range_kind.cpp): what FakeQuant, the rewrite and its report, calibration and `inspect`
/// ask about a kind.
struct RangeKindTraits {
  /// In graph JSON.
  std::string_view name;
  /// In texts for people.
  std::string_view text;
  /// A training step finds the range in its own tensor and updates min and max, which have no gradient. Otherwise they
  /// are inputs like any other.
  bool observes = false;
  /// Min and max are trainable variables, which the rounding inside the range gives gradients, too.
  bool learned = false;
  /// Observed values are combined with those of earlier steps, which are counted (state "num_updates").
  bool counts_steps = false;
  /// Into an average that FakeQuantAttributes::ema_decay weighs.
  bool averages = false;

  /// The range is that of the step's own tensor and of no other: made for weights, which change with each step.
  bool follows_tensor() const { return observes && !counts_steps; }
  /// A training step changes the range.
  bool changes() const { return observes || learned; }
};

const RangeKindTraits& traits_of(RangeKind kind);

/// RangeKindTraits::name of each kind, in their order.
std::span<const std::string_view> range_kind_names();

/// Which kind of range a rewrite gives to the quantizers that it inserts.
enum class RangeChoice {
  /// tf.contrib.quantize's choice: kLastValue for weights, kMovingAverage for activations.
  kObserved,
  kLearned,
  /// Learned where there are kFewBits or fewer.
  kAuto,
  /// kLastValue for weights, kAllValues for activations.
  kAllValues,
  /// kAuto with kAllValues instead of averages: for answers that are numbers. Trainings of others make kAuto of it
  /// (training::ranges_for()).
  kByTask,
};
/// At so many bits and fewer the smallest and the largest value waste the few integers there are (docs/low-bits.md).
inline constexpr int kFewBits = 4;

/// Which scales a rewrite allows.
enum class ScaleChoice {
  kAny,
  kPowerOfTwo,
};

/// "any" and "power-of-two".
std::span<const std::string_view> names_of(ScaleChoice);

/// The names that --ranges takes, in RangeChoice's order.
std::span<const std::string_view> names_of(RangeChoice);
/// What each of them means, for --help.
const char* help_of_range_choices();

/// Whether it learns the ranges of few bits only.
bool depends_on_bits(RangeChoice choice);

/// The kind that this gives to a quantizer of weights, or of activations, of so many bits.
RangeKind weight_range(RangeChoice choice, std::int64_t bits);
RangeKind activation_range(RangeChoice choice, std::int64_t bits);

}  // namespace miniqat::quantize
