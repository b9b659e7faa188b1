#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "quantize/rewrite/layer_bits.h"
#include "training/quantize/measured_widths.h"

namespace miniqat::training {

/// A quantizer whose width is to be chosen.
struct WidthCosts {
  std::int64_t elements = 0;
  /// The loss increase at each width with this quantizer alone, widest width first.
  std::vector<double> loss_increase;
};

/// The term of predictions: the loss increase at a width, but at least 0 and at least that of the next wider one, since
/// a gain by fewer bits is noise.
double predicted_loss_increase(const WidthCosts& costs, std::size_t width);

/// From all quantizers at the widest width to all at the narrowest, by the greedy method. The next step down (one
/// quantizer, to the next width) is always that of least loss increase per bit saved. Among equals it is the one that
/// saves more bits, then the first. (Sums over layers and a Pareto front as in HAWQ-V2, Dong et al. 2020, with measured
/// losses in place of Hessian traces.) `widths` descend strictly; each of the costs has a number for each of them.
std::vector<FrontPoint> greedy_front(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths);

/// The width of each of `quantizers` quantizers at the front's point `place`.
std::vector<std::int64_t> widths_at(std::span<const FrontPoint> front, std::size_t place, std::size_t quantizers);

/// Whether widths, one for each quantizer, keep to a budget.
using KeepsToBudget = std::function<bool(std::span<const std::int64_t>)>;

/// Gives back what is left of a budget behind a last step that saved more than was missing. The next quantizer to get a
/// wider one of `widths` is always that of the greatest predicted gain per bit spent, among those that still keep to
/// the budget; among equals it is the one that spends fewer bits, then the first. No quantizer becomes narrower.
std::vector<std::int64_t> widened(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths,
                                  std::vector<std::int64_t> chosen, const KeepsToBudget& keeps);

/// The predicted loss increase with all quantizers at `chosen`, some of `widths`.
double predicted_loss_increase(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths,
                               std::span<const std::int64_t> chosen);

/// ceil(elements * bits / 8)
std::int64_t packed_bytes(std::int64_t elements, std::int64_t bits);

/// The costs of weights or of outputs whose width is to be chosen, which have no fixed_bits.
std::vector<WidthCosts> costs_of(std::span<const QuantizerSensitivity> quantizers, bool weights);

/// Widths of weights or of outputs, in the order of costs_of().
struct WidthChoice {
  std::vector<std::int64_t> widths;
  /// Bits of an element; none without elements, as outputs have where the logits are the only one.
  std::optional<double> average = {};
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

/// The choice as settings by layer. Of two patterns that fit a layer the first one counts, so that of an inner layer
/// stands before its scope's. Outputs of fixed_bits have these.
std::vector<quantize::LayerBits> layer_bits_of(std::span<const QuantizerSensitivity> quantizers,
                                               const WidthChoice& weights, const WidthChoice& activations);

}  // namespace miniqat::training
