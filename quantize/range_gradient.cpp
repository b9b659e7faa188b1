#include "quantize/range_gradient.h"

namespace miniqat::quantize {
namespace {

/// The range that the grid was made for.
Range<float> range_of_grid(Range<float> range, const GridOptions& options) {
  if (options.power_of_two) {
    const Affine<float> grid = grid_of(range, options);
    return {grid.nudged_min, grid.nudged_max};
  }
  range = widen_to_zero(range);
  return options.symmetric ? widen_symmetric(range, options) : range;
}

Range<double> learned_gradient(const RangeSums& sums, Range<float> range, bool symmetric) {
  const double width = range.max - double{range.min};
  // N * s is the width. Of an empty range nothing was summed up.
  const double inside = sums.inside == 0 ? 0 : sums.inside / width;
  const Range<double> each = {sums.below - inside, sums.above + inside};
  if (!symmetric || width == 0) return each;
  const double of_width = range.min * each.min + range.max * each.max;
  return {of_width / (2 * double{range.min}), of_width / (2 * double{range.max})};
}

/// What an end of the grid moves by when the stored one moves, both by the same factor.
double share_of(float on_grid, float stored) { return stored == 0 ? 1 : on_grid / double{stored}; }

}  // namespace

void range_gradients(const FakeQuantAttributes& attributes, std::span<const Range<float>> ranges,
                     std::span<const RangeSums> sums, float* d_min, float* d_max) {
  const GridOptions options = attributes.grid_options();
  for (std::size_t c = 0; c < sums.size(); ++c) {
    Range<double> gradient = {sums[c].below, sums[c].above};
    if (traits_of(attributes.range).learned) {
      const Range<float> on_grid = range_of_grid(ranges[c], options);
      gradient = learned_gradient(sums[c], on_grid, options.symmetric);
      if (options.power_of_two) {
        gradient.min *= share_of(on_grid.min, ranges[c].min);
        gradient.max *= share_of(on_grid.max, ranges[c].max);
      }
    }
    if (d_min) d_min[c] = static_cast<float>(gradient.min);
    if (d_max) d_max[c] = static_cast<float>(gradient.max);
  }
}

}  // namespace miniqat::quantize
