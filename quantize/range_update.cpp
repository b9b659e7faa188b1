#include "quantize/range_update.h"

#include <algorithm>

namespace miniqat::quantize {

template <class T>
void update_ranges(const FakeQuantAttributes& attributes, Observation<T>& observation, const StoredRange<T>& stored) {
  if (!widen(observation, attributes.grid_options())) return;
  double weight = 1;
  if (traits_of(attributes.range).averages) {
    T& t = *stored.num_updates;
    t = std::clamp<T>(t + 1, 1, static_cast<T>(kMaxUpdates));
    weight = debiased_weight(attributes.ema_decay, static_cast<std::int64_t>(t));
  }
  for (std::size_t c = 0; c < observation.ranges.size(); ++c) {
    Range<T>& range = observation.ranges[c];
    stored.min[c] = range.min = move_towards(stored.min[c], range.min, weight);
    stored.max[c] = range.max = move_towards(stored.max[c], range.max, weight);
  }
}

template void update_ranges(const FakeQuantAttributes&, Observation<float>&, const StoredRange<float>&);
template void update_ranges(const FakeQuantAttributes&, Observation<double>&, const StoredRange<double>&);

}  // namespace miniqat::quantize
