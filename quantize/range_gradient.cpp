#include "quantize/range_gradient.h"

namespace miniqat::quantize {
namespace {

/// The range that the grid was made for.
Range<float> range_of_grid(Range<float> range, const GridOptions& options) {
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

}  // namespace

void range_gradients(const FakeQuantAttributes& attributes, std::span<const Range<float>> ranges,
                     std::span<const RangeSums> sums, float* d_min, float* d_max) {
  const GridOptions options = attributes.grid_options();
  for (std::size_t c = 0; c < sums.size(); ++c) {
    Range<double> gradient = {sums[c].below, sums[c].above};
    if (traits_of(attributes.range).learned)
      gradient = learned_gradient(sums[c], range_of_grid(ranges[c], options), options.symmetric);
    if (d_min) d_min[c] = static_cast<float>(gradient.min);
    if (d_max) d_max[c] = static_cast<float>(gradient.max);
  }
}

}  // namespace miniqat::quantize
