#pragma once

#include <span>
#include <vector>

#include "quantize/rewrite/layer_bits.h"
#include "training/quantize/bit_allocation.h"
#include "training/quantize/sensitivity.h"

namespace miniqat::training {

/// The costs of weights or of outputs whose width is to be chosen, which have no fixed_bits.
std::vector<WidthCosts> costs_of(std::span<const QuantizerSensitivity> quantizers, bool weights);

/// Widths of weights or of outputs, in the order of costs_of().
struct WidthChoice {
  std::vector<std::int64_t> widths;
  /// Bits of an element.
  double average = 0;
  /// Predicted.
  double loss_increase = 0;
};

/// The first points of the fronts that keep to the budget, with the rest of it given back (widened()), of weights and
/// of outputs. A budget that was not refused has such points.
WidthChoice weights_within(const Sensitivity& sensitivity, const BitBudget& budget);
WidthChoice activations_within(const Sensitivity& sensitivity, const BitBudget& budget);

/// All of one width, which `sensitivity` measured.
WidthChoice choice_at(const Sensitivity& sensitivity, std::int64_t bits, bool weights);
/// Whether the budget allows one width for all weights and, for an average, outputs. Measures nothing yet.
bool allows_everywhere(const BitBudget& budget, const Sensitivity& sensitivity, std::int64_t bits);

/// The bytes of all weights, packed.
std::int64_t bytes_of(const Sensitivity& sensitivity, const WidthChoice& weights);

/// The one with the least measured loss, since losses of single layers do not add up and no prediction can decide;
/// among equals the first. At least one.
const ChosenBits& best_of(std::span<const ChosenBits> candidates);

/// As settings by layer. Of two patterns that fit a layer the first one counts, so that of an inner layer stands before
/// its scope's. Outputs of fixed_bits have these.
std::vector<quantize::LayerBits> layer_bits_of(std::span<const QuantizerSensitivity> quantizers,
                                               const WidthChoice& weights, const WidthChoice& activations);

}  // namespace miniqat::training
