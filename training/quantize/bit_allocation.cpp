#include "training/quantize/bit_allocation.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace miniqat::training {
namespace {

/// The value of a loss that is NaN: never worth a bit, and sums with it stay finite.
constexpr double kNoNumber = 1e30;

/// One quantizer on its way down.
struct Descent {
  std::int64_t elements = 0;
  /// By width, widest first; never falls.
  std::vector<double> predicted;
  std::size_t at = 0;

  bool is_down() const { return at + 1 == predicted.size(); }
  double rise() const { return predicted[at + 1] - predicted[at]; }
  std::int64_t saves(std::span<const std::int64_t> widths) const { return elements * (widths[at] - widths[at + 1]); }
};

Descent descent_of(const WidthCosts& costs) {
  Descent descent{.elements = costs.elements, .predicted = {}};
  for (std::size_t width = 0; width < costs.loss_increase.size(); ++width)
    descent.predicted.push_back(predicted_loss_increase(costs, width));
  return descent;
}

/// The least is taken first.
auto price(const Descent& descent, std::span<const std::int64_t> widths) {
  const std::int64_t saved = std::max<std::int64_t>(descent.saves(widths), 1);
  return std::tuple(descent.rise() / static_cast<double>(saved), -saved);
}

FrontPoint widest(std::span<const Descent> descents, std::int64_t bits) {
  FrontPoint point{.quantizer = {}, .bits = bits};
  for (const Descent& descent : descents) {
    point.total_bits += descent.elements * bits;
    point.bytes += packed_bytes(descent.elements, bits);
    point.loss_increase += descent.predicted.front();
  }
  return point;
}

}  // namespace

double predicted_loss_increase(const WidthCosts& costs, std::size_t width) {
  double highest = 0;
  for (const double increase : std::span(costs.loss_increase).first(width + 1))
    highest = std::max(highest, std::isfinite(increase) ? increase : kNoNumber);
  return highest;
}

std::vector<FrontPoint> greedy_front(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths) {
  std::vector<Descent> descents;
  for (const WidthCosts& one : costs) descents.push_back(descent_of(one));
  std::vector<FrontPoint> front = {widest(descents, widths.front())};
  for (;;) {
    Descent* best = nullptr;
    for (Descent& descent : descents)
      if (!descent.is_down() && (best == nullptr || price(descent, widths) < price(*best, widths))) best = &descent;
    if (best == nullptr) return front;
    FrontPoint point = front.back();
    point.quantizer = static_cast<std::size_t>(best - descents.data());
    point.bits = widths[best->at + 1];
    point.total_bits -= best->saves(widths);
    point.bytes += packed_bytes(best->elements, point.bits) - packed_bytes(best->elements, widths[best->at]);
    point.loss_increase += best->rise();
    ++best->at;
    front.push_back(point);
  }
}

std::vector<std::int64_t> widths_at(std::span<const FrontPoint> front, std::size_t place, std::size_t quantizers) {
  std::vector<std::int64_t> widths(quantizers, front.front().bits);
  for (const FrontPoint& point : front.subspan(1, place)) widths[*point.quantizer] = point.bits;
  return widths;
}

std::int64_t packed_bytes(std::int64_t elements, std::int64_t bits) { return (elements * bits + 7) / 8; }

}  // namespace miniqat::training
