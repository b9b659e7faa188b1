#include <algorithm>
#include <cmath>
#include <limits>

#include "core/float_range.h"
#include "layers/chain/chain_fusion.h"
#include "quantize/fake_quant.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_observer.h"

namespace miniqat::quantize {
namespace {

/// The range that one step's tensor leaves behind, staged; NaN for a tensor that says nothing about it (see
/// no_ranges in fake_quant.cpp).
Range<float> learn(const FakeQuantAttributes& attributes, const layers::ChainRange& range,
                   const layers::ObservedRange& observed) {
  const GridOptions options = attributes.grid_options();
  Range<float> seen = widen_to_zero(Range<float>{observed.least, observed.largest});
  if (options.symmetric) seen = widen_symmetric(seen, options);
  // Adding 0 makes 0 of -0.
  seen = {seen.min + 0.0f, seen.max + 0.0f};
  if (observed.has_nan || !std::isfinite(seen.min) || !std::isfinite(seen.max)) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    return {nan, nan};
  }
  double weight = 1;
  if (attributes.range == RangeKind::kMovingAverage) {
    *range.state = std::clamp(*range.state + 1, 1.0f, static_cast<float>(kMaxUpdates));
    weight = debiased_weight(attributes.ema_decay, static_cast<std::int64_t>(*range.state));
  }
  *range.new_min = move_towards(*range.new_min, seen.min, weight);
  *range.new_max = move_towards(*range.new_max, seen.max, weight);
  return {*range.new_min, *range.new_max};
}

}  // namespace

std::optional<Fusion> FakeQuant::fuse(const Node& self, const FusionScope& scope) const {
  return layers::fuse_chain(self, scope);
}

bool FakeQuant::learns_range() const { return attributes_.is_training && attributes_.range != RangeKind::kFixed; }

layers::ChainGrid FakeQuant::grid(const layers::ChainRange& range, const layers::ObservedRange* observed) const {
  const Range<float> used =
      observed != nullptr ? learn(attributes_, range, *observed) : Range<float>{range.min, range.max};
  const Affine<float> grid =
      grid_of(used, {static_cast<int>(attributes_.bits), attributes_.narrow_range, attributes_.symmetric});
  return {.lowest = grid.empty() ? -kInfinity : grid.nudged_min,
          .highest = grid.empty() ? kInfinity : grid.nudged_max,
          .scale = grid.scale,
          .zero_point = grid.zero_point,
          .quant_min = grid.quant_min,
          .quant_max = grid.quant_max,
          .nudged_min = grid.nudged_min,
          .nudged_max = grid.nudged_max};
}

void FakeQuant::quantize_piece(const layers::ChainGrid& g, const float* x, float* y, std::int64_t n) const {
  fake_quant_piece(x, y, n, Affine<float>{g.scale, g.zero_point, g.quant_min, g.quant_max, g.nudged_min, g.nudged_max});
}

}  // namespace miniqat::quantize
