#pragma once

#include <span>
#include <vector>

#include "quantize/rewrite/layer_bits.h"
#include "training/quantize/bit_allocation.h"
#include "training/quantize/sensitivity.h"

namespace miniqat::training {

/// Those of weights or of outputs whose width is to be chosen, which have no fixed_bits.
std::vector<WidthCosts> costs_of(std::span<const QuantizerSensitivity> quantizers, bool weights);

/// Widths of weights or of outputs, in the order of costs_of().
struct WidthChoice {
  std::vector<std::int64_t> widths;
  /// Bits of an element.
  double average = 0;
  /// Predicted.
  double loss_increase = 0;
};

/// All of one width, which `sensitivity` measured.
WidthChoice choice_at(const Sensitivity& sensitivity, std::int64_t bits, bool weights);

/// The first points of the fronts that keep to the budget, of weights and of outputs. One that was not refused has
/// some.
WidthChoice weights_within(const Sensitivity& sensitivity, const BitBudget& budget);
WidthChoice activations_within(const Sensitivity& sensitivity, const BitBudget& budget);

/// As settings by layer. Of two patterns that fit a layer the first one counts, so that of an inner layer stands before
/// its scope's. Outputs of fixed_bits have these.
std::vector<quantize::LayerBits> layer_bits_of(std::span<const QuantizerSensitivity> quantizers,
                                               const WidthChoice& weights, const WidthChoice& activations);

}  // namespace miniqat::training
