#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/graph/op.h"
#include "core/kernels/scratch.h"
#include "quantize/affine.h"
#include "quantize/fake_quant_attributes.h"
#include "quantize/range_training.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::quantize {

// Which ranges and grids a step of FakeQuant has. All lie in the working memory of a run (`scope`).

/// The arithmetic of ranges in the fast backend: their observation, what a step learns of it, their grids.
struct FastRanges {
  using Number = float;
  static constexpr bool kSavesMask = true;
  static constexpr auto observe = quantize::observe;
  static constexpr auto learn = update_ranges;
  static constexpr auto grid = grid_of<float>;
};

/// The arithmetic of ranges in the reference backend.
template <class T>
struct ReferenceRanges {
  using Number = T;
  static constexpr bool kSavesMask = false;
  static Observation<T> observe(std::span<const T> x, std::int64_t channels, ScratchScope& scope) {
    return reference::observe(x, scope.take<Range<T>>(static_cast<std::size_t>(channels)));
  }
  static void learn(const FakeQuantAttributes& attributes, Observation<T>& observation, const StoredRange<T>& stored) {
    reference::learn_ranges({attributes.range, attributes.ema_decay, attributes.grid_options()}, observation,
                            stored.min.data(), stored.max.data(), stored.num_updates);
  }
  static constexpr auto widen = reference::widen_observed<T>;
  static constexpr auto grid = reference::grid<T>;
};

/// Whether a run's x, of that shape, sets the run's ranges.
inline bool sets_ranges(const FakeQuantAttributes& attributes, const Phase& phase, const Shape& x) {
  return phase.training && attributes.observes_range() && x.elements() > 0;
}

/// Makes the ranges of this step of what was observed, and stages them with the count of observations (the first
/// state), if their kind has one. Input `min` has the ranges' minima, the next input their maxima.
template <class Ranges, class T = typename Ranges::Number>
void stage_ranges(const FakeQuantAttributes& attributes, const ForwardContext& context, int min,
                  Observation<T>& observation) {
  const bool counts = traits_of(attributes.range).counts_steps;
  Ranges::learn(attributes, observation,
                {.min = context.update_of(min)->values<T>(),
                 .max = context.update_of(min + 1)->values<T>(),
                 .num_updates = counts ? context.state[0]->data<T>() : nullptr});
}

template <class T>
std::span<const Range<T>> ranges_in(const Tensor& min, const Tensor& max, ScratchScope& scope) {
  const std::span<Range<T>> ranges = scope.take<Range<T>>(static_cast<std::size_t>(min.elements()));
  for (std::size_t c = 0; c < ranges.size(); ++c) ranges[c] = {min.data<T>()[c], max.data<T>()[c]};
  return ranges;
}

/// The ranges of forward: observed and staged, or as they came.
template <class Ranges, class T = typename Ranges::Number>
std::span<const Range<T>> ranges_of_step(const FakeQuantAttributes& attributes, const ForwardContext& context,
                                         ScratchScope& scope) {
  if (!sets_ranges(attributes, context, context.input(0).shape()))
    return ranges_in<T>(context.input(1), context.input(2), scope);
  Observation<T> observation = Ranges::observe(context.input(0).values<T>(), context.input(1).elements(), scope);
  leave_observation(observation, context.observed);
  stage_ranges<Ranges>(attributes, context, 1, observation);
  return observation.ranges;
}

/// The ranges of forward, for backward. Without a mask it looks again whether x has a NaN or an infinity: nothing was
/// staged then, and the ranges were NaN.
template <class Ranges, class T = typename Ranges::Number>
std::span<const Range<T>> ranges_again(const FakeQuantAttributes& attributes, const ForwardContext& forward,
                                       ScratchScope& scope) {
  if (!sets_ranges(attributes, forward, forward.input(0).shape()))
    return ranges_in<T>(forward.input(1), forward.input(2), scope);
  if constexpr (!Ranges::kSavesMask) {
    Observation<T> observation = Ranges::observe(forward.input(0).values<T>(), forward.input(1).elements(), scope);
    if (!Ranges::widen(observation, attributes.grid_options())) return observation.ranges;
  }
  return ranges_in<T>(*forward.update_of(1), *forward.update_of(2), scope);
}

template <class Ranges, class T = typename Ranges::Number>
std::span<const Affine<T>> grids_of(const FakeQuantAttributes& attributes, std::span<const Range<T>> ranges,
                                    ScratchScope& scope) {
  const std::span<Affine<T>> grids = scope.take<Affine<T>>(ranges.size());
  for (std::size_t c = 0; c < ranges.size(); ++c) grids[c] = Ranges::grid(ranges[c], attributes.grid_options());
  return grids;
}

}  // namespace miniqat::quantize
