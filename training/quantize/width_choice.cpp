#include "training/quantize/width_choice.h"

#include <algorithm>

namespace miniqat::training {
namespace {

double elements_of(std::span<const WidthCosts> costs) {
  double elements = 0;
  for (const WidthCosts& cost : costs) elements += static_cast<double>(cost.elements);
  return elements;
}

double average_bits(std::span<const WidthCosts> costs, std::span<const std::int64_t> widths) {
  const double elements = elements_of(costs);
  double bits = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) bits += static_cast<double>(costs[i].elements * widths[i]);
  return elements > 0 ? bits / elements : 0;
}

/// The last point keeps to every budget that was not refused.
WidthChoice first_within(std::span<const FrontPoint> front, std::span<const WidthCosts> costs, const auto& keeps) {
  const auto place = static_cast<std::size_t>(std::ranges::find_if(front, keeps) - front.begin());
  WidthChoice choice{.widths = widths_at(front, place, costs.size()), .loss_increase = front[place].loss_increase};
  choice.average = average_bits(costs, choice.widths);
  return choice;
}

WidthChoice within_average(std::span<const FrontPoint> front, std::span<const WidthCosts> costs, double average) {
  const double most = elements_of(costs) * average;
  return first_within(front, costs,
                      [&](const FrontPoint& point) { return static_cast<double>(point.total_bits) <= most; });
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

WidthChoice choice_at(const Sensitivity& sensitivity, std::int64_t bits, bool weights) {
  const std::vector<WidthCosts> costs = costs_of(sensitivity.quantizers, weights);
  const auto place = static_cast<std::size_t>(std::ranges::find(sensitivity.bits, bits) - sensitivity.bits.begin());
  WidthChoice choice{.widths = std::vector(costs.size(), bits), .average = static_cast<double>(bits)};
  for (const WidthCosts& cost : costs) choice.loss_increase += predicted_loss_increase(cost, place);
  return choice;
}

WidthChoice weights_within(const Sensitivity& sensitivity, const BitBudget& budget) {
  const std::vector<WidthCosts> costs = costs_of(sensitivity.quantizers, true);
  if (budget.average_bits) return within_average(sensitivity.weight_front, costs, *budget.average_bits);
  return first_within(sensitivity.weight_front, costs,
                      [&](const FrontPoint& point) { return point.bytes <= *budget.bytes; });
}

WidthChoice activations_within(const Sensitivity& sensitivity, const BitBudget& budget) {
  if (!budget.average_bits)
    return choice_at(sensitivity, budget.activation_bits.value_or(sensitivity.bits.front()), false);
  return within_average(sensitivity.activation_front, costs_of(sensitivity.quantizers, false), *budget.average_bits);
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
