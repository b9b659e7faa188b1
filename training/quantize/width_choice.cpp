#include "training/quantize/width_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace miniqat::training {
namespace {

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
  const double average = elements > 0 ? total_bits(costs, widths) / elements : 0;
  const double loss_increase = predicted_loss_increase(costs, sensitivity.bits, widths);
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
