#include "training/quantize/bit_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace miniqat::training {
namespace {

/// The value of a loss that is NaN: never worth a bit, and sums with it stay finite.
constexpr double kNoNumber = 1e30;

/// One quantizer on its way down.
struct Descent {
  std::int64_t elements = 0;
  /// One for each width, widest first; never falls.
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

std::size_t place_of(std::span<const std::int64_t> widths, std::int64_t bits) {
  return static_cast<std::size_t>(std::ranges::find(widths, bits) - widths.begin());
}

/// Another width for one quantizer.
struct Widening {
  std::size_t quantizer = 0;
  std::int64_t bits = 0;
  double gain_per_bit = 0;
  std::int64_t spends = 0;

  bool is_better_than(const Widening& other) const {
    return std::tuple(gain_per_bit, -spends) > std::tuple(other.gain_per_bit, -other.spends);
  }
};

/// To any wider width: behind one that gains nothing there may be one that gains.
std::vector<Widening> widenings(const WidthCosts& costs, std::span<const std::int64_t> widths, std::size_t quantizer,
                                std::int64_t bits) {
  std::vector<Widening> list;
  const double now = predicted_loss_increase(costs, place_of(widths, bits));
  for (std::size_t place = 0; place < place_of(widths, bits); ++place) {
    const std::int64_t spends = costs.elements * (widths[place] - bits);
    const double gain = now - predicted_loss_increase(costs, place);
    list.push_back({.quantizer = quantizer,
                    .bits = widths[place],
                    .gain_per_bit = gain / static_cast<double>(std::max<std::int64_t>(spends, 1)),
                    .spends = spends});
  }
  return list;
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

double total_bits(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths) {
  double bits = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) bits += static_cast<double>(costs[i].elements * widths[i]);
  return bits;
}

double elements_of(std::span<const WidthCosts> costs) {
  double elements = 0;
  for (const WidthCosts& cost : costs) elements += static_cast<double>(cost.elements);
  return elements;
}

std::int64_t packed(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) bytes += packed_bytes(costs[i].elements, widths[i]);
  return bytes;
}

WidthChoice choice_of(const Sensitivity& sensitivity, std::span<const WidthCosts> costs,
                      std::vector<std::int64_t> widths) {
  const double elements = elements_of(costs);
  const double loss_increase = predicted_loss_increase(costs, sensitivity.bits, widths);
  const std::optional<double> average =
      elements > 0 ? std::optional(total_bits(costs, widths) / elements) : std::nullopt;
  return {.widths = std::move(widths), .average = average, .loss_increase = loss_increase};
}

/// The last point keeps to every budget that was not refused.
WidthChoice first_within(const Sensitivity& sensitivity, std::span<const FrontPoint> front,
                         std::span<const WidthCosts> costs, const KeepsToBudget& keeps) {
  std::size_t place = 0;
  while (place + 1 < front.size() && !keeps(widths_at(front, place, costs.size()))) ++place;
  return choice_of(sensitivity, costs, widened(costs, sensitivity.bits, widths_at(front, place, costs.size()), keeps));
}

KeepsToBudget within_average(std::span<const WidthCosts> costs, double average) {
  return [costs, most = elements_of(costs) * average](std::span<const std::int64_t> widths) {
    return total_bits(costs, widths) <= most;
  };
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

std::vector<std::int64_t> widened(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths,
                                  std::vector<std::int64_t> chosen, const KeepsToBudget& keeps) {
  for (;;) {
    std::optional<Widening> best;
    for (std::size_t i = 0; i < costs.size(); ++i)
      for (const Widening& one : widenings(costs[i], widths, i, chosen[i])) {
        if (best && !one.is_better_than(*best)) continue;
        const std::int64_t former = std::exchange(chosen[i], one.bits);
        if (keeps(chosen)) best = one;
        chosen[i] = former;
      }
    if (!best) return chosen;
    chosen[best->quantizer] = best->bits;
  }
}

double predicted_loss_increase(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths,
                               std::span<const std::int64_t> chosen) {
  double sum = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) sum += predicted_loss_increase(costs[i], place_of(widths, chosen[i]));
  return sum;
}

std::int64_t packed_bytes(std::int64_t elements, std::int64_t bits) { return (elements * bits + 7) / 8; }

std::vector<WidthCosts> costs_of(std::span<const QuantizerSensitivity> quantizers, bool weights) {
  std::vector<WidthCosts> costs;
  for (const QuantizerSensitivity& one : quantizers) {
    if (one.is_weights != weights || one.fixed_bits) continue;
    WidthCosts& cost = costs.emplace_back(WidthCosts{.elements = one.elements, .loss_increase = {}});
    for (const Measurement& measurement : one.alone) cost.loss_increase.push_back(measurement.loss_increase);
  }
  return costs;
}

WidthChoice weights_within(const Sensitivity& sensitivity, const BitBudget& budget) {
  const std::vector<WidthCosts> costs = costs_of(sensitivity.quantizers, true);
  const KeepsToBudget within_bytes = [&](std::span<const std::int64_t> widths) {
    return packed(costs, widths) <= *budget.bytes;
  };
  return first_within(sensitivity, sensitivity.weight_front, costs,
                      budget.bytes ? within_bytes : within_average(costs, *budget.average_bits));
}

WidthChoice activations_within(const Sensitivity& sensitivity, const BitBudget& budget) {
  if (!budget.average_bits)
    return choice_at(sensitivity, budget.activation_bits.value_or(sensitivity.bits.front()), false);
  const std::vector<WidthCosts> costs = costs_of(sensitivity.quantizers, false);
  return first_within(sensitivity, sensitivity.activation_front, costs, within_average(costs, *budget.average_bits));
}

WidthChoice choice_at(const Sensitivity& sensitivity, std::int64_t bits, bool weights) {
  const std::vector<WidthCosts> costs = costs_of(sensitivity.quantizers, weights);
  return choice_of(sensitivity, costs, std::vector(costs.size(), bits));
}

bool allows_everywhere(const BitBudget& budget, const Sensitivity& sensitivity, std::int64_t bits) {
  if (budget.average_bits) return static_cast<double>(bits) <= *budget.average_bits;
  const std::vector<WidthCosts> costs = costs_of(sensitivity.quantizers, true);
  return packed(costs, std::vector(costs.size(), bits)) <= *budget.bytes;
}

std::int64_t bytes_of(const Sensitivity& sensitivity, const WidthChoice& weights) {
  return packed(costs_of(sensitivity.quantizers, true), weights.widths);
}

const ChosenBits& best_of(std::span<const ChosenBits> candidates) {
  return *std::ranges::min_element(candidates, {}, [](const ChosenBits& one) {
    const double loss = one.measured.evaluation.loss;
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
  });
}

std::vector<quantize::LayerBits> layer_bits_of(std::span<const QuantizerSensitivity> quantizers,
                                               const WidthChoice& weights, const WidthChoice& activations) {
  std::vector<quantize::LayerBits> list;
  const std::string* last = nullptr;
  auto place = list.end();
  auto weight = weights.widths.begin(), activation = activations.widths.begin();
  for (const QuantizerSensitivity& one : quantizers) {
    if (last == nullptr || *last != one.layer) {
      place = std::ranges::find_if(
          list, [&](const auto& other) { return quantize::matches_layer(other.pattern, one.layer); });
      place = list.insert(place, {.pattern = quantize::pattern_of_layer(one.layer)});
    }
    last = &one.layer;
    const std::int64_t width = one.fixed_bits ? *one.fixed_bits : one.is_weights ? *weight++ : *activation++;
    (one.is_weights ? place->weight_bits : place->activation_bits) = static_cast<int>(width);
  }
  return list;
}

}  // namespace miniqat::training
