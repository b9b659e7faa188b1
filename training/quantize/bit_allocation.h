#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

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

/// Widths for all quantizers. Each point of a front differs from the one before in one quantizer.
struct FrontPoint {
  /// The quantizer that went down to `bits`; none for the first point, at which all have the widest width.
  std::optional<std::size_t> quantizer;
  std::int64_t bits = 0;
  /// The bits of all elements together.
  std::int64_t total_bits = 0;
  /// Each quantizer's elements packed by themselves, up to whole bytes.
  std::int64_t bytes = 0;
  /// Predicted.
  double loss_increase = 0;
};

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

}  // namespace miniqat::training
