#include "quantize/range_update.h"

#include <algorithm>

namespace miniqat::quantize {
namespace {

/// The least range that contains both; a NaN in `stored` counts for nothing.
Range<float> enclosing(Range<float> range, Range<float> stored) {
  return {std::min(range.min, stored.min), std::max(range.max, stored.max)};
}

}  // namespace

void update_ranges(const FakeQuantAttributes& attributes, Observation<float>& observation, const StoredRange& stored) {
  if (!widen(observation, attributes.grid_options())) return;
  const RangeKindTraits& kind = traits_of(attributes.range);
  if (kind.counts_steps) {
    float& t = *stored.num_updates;
    t = std::clamp<float>(t + 1, 1, static_cast<float>(kMaxUpdates));
  }
  const double weight =
      kind.averages ? debiased_weight(attributes.ema_decay, static_cast<std::int64_t>(*stored.num_updates)) : 1;
  for (std::size_t c = 0; c < observation.ranges.size(); ++c) {
    Range<float>& range = observation.ranges[c];
    if (attributes.range == RangeKind::kAllValues && *stored.num_updates > 1)
      range = enclosing(range, {stored.min[c], stored.max[c]});
    stored.min[c] = range.min = move_towards(stored.min[c], range.min, weight);
    stored.max[c] = range.max = move_towards(stored.max[c], range.max, weight);
  }
}

}  // namespace miniqat::quantize
