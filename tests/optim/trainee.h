#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/engine/optimizer.h"

namespace miniqat::testing {

/// A variable, stepped by an optimizer.
struct Trainee {
  Tensor value;
  /// From the first step on, as Optimizer::slot_names() has them.
  std::vector<Tensor> slots = {};
  std::int64_t step = 0;

  Trainee(const Shape& shape, float start) : value(shape) { std::ranges::fill(value.values<float>(), start); }
  explicit Trainee(const std::vector<float>& start) : Trainee(Shape{std::ssize(start)}, 0) {
    std::ranges::copy(start, value.data<float>());
  }

  /// The weights after a step.
  std::vector<float> all_after(const Optimizer& optimizer, const std::vector<float>& gradients) {
    const Tensor gradient = Tensor::from<float>(value.shape(), gradients);
    while (slots.size() < optimizer.slot_names().size()) slots.emplace_back(value.shape());
    std::vector<Tensor*> of_step;
    for (Tensor& slot : slots) of_step.push_back(&slot);
    optimizer.apply({.name = "w", .value = &value, .gradient = &gradient, .slots = of_step, .step = ++step});
    return {value.values<float>().begin(), value.values<float>().end()};
  }

  /// The first weight after a step with this gradient everywhere.
  float after(const Optimizer& optimizer, float gradient) {
    return all_after(optimizer, std::vector<float>(static_cast<std::size_t>(value.elements()), gradient))[0];
  }
};

}  // namespace miniqat::testing
