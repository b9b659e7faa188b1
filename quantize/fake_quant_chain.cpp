#include <span>

#include "core/float_range.h"
#include "layers/chain/chain_fusion.h"
#include "quantize/fake_quant.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_gradient.h"
#include "quantize/range_update.h"

namespace miniqat::quantize {
namespace {

Range<float> learn(const FakeQuantAttributes& attributes, const layers::ChainRange& range,
                   const layers::ObservedRange& observed) {
  Range<float> of_step = {observed.least, observed.largest};
  Observation<float> observation{std::span(&of_step, 1), observed.has_nan};
  update_ranges(attributes, observation,
                {.min = {range.new_min, 1}, .max = {range.new_max, 1}, .num_updates = range.state});
  return of_step;
}

}  // namespace

std::optional<Fusion> FakeQuant::fuse(const Node& self, const FusionScope& scope) const {
  return layers::fuse_chain(self, scope);
}

layers::ChainGrid FakeQuant::grid(const layers::ChainRange& range, const layers::ObservedRange* observed) const {
  const Range<float> used =
      observed != nullptr ? learn(attributes_, range, *observed) : Range<float>{range.min, range.max};
  const Affine<float> grid = grid_of(used, attributes_.grid_options());
  return {.lowest = grid.empty() ? -kInfinity : grid.nudged_min,
          .highest = grid.empty() ? kInfinity : grid.nudged_max,
          .scale = grid.scale,
          .zero_point = grid.zero_point,
          .quant_min = grid.quant_min,
          .quant_max = grid.quant_max,
          .nudged_min = grid.nudged_min,
          .nudged_max = grid.nudged_max};
}

std::pair<float, float> FakeQuant::gradients_of_range(const layers::ChainRange& range,
                                                      const layers::RoundingSums& sums) const {
  const Range<float> used = {range.min, range.max};
  const double scale = grid_of(used, attributes_.grid_options()).scale;
  const RangeSums of_range = {.below = sums.below, .above = sums.above, .inside = sums.inside * scale};
  std::pair<float, float> gradients;
  range_gradients(attributes_, {&used, 1}, {&of_range, 1}, &gradients.first, &gradients.second);
  return gradients;
}

void FakeQuant::quantize_piece(const layers::ChainGrid& g, const float* x, float* y, std::int64_t n) const {
  fake_quant_piece(x, y, n, Affine<float>{g.scale, g.zero_point, g.quant_min, g.quant_max, g.nudged_min, g.nudged_max});
}

}  // namespace miniqat::quantize
