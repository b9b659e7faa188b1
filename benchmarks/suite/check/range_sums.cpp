#include "benchmarks/suite/check/range_sums.h"

#include <cmath>
#include <vector>

#include "core/error.h"

namespace miniqat::benchmarks {
namespace {

/// A sum, and that of the magnitudes, to which its rounding is in proportion.
struct CheckedSum {
  double sum = 0;
  double magnitude = 0;

  void add(double value) {
    sum += value;
    magnitude += std::abs(value);
  }
  bool agrees(double other) const { return std::abs(sum - other) <= 1e-5 * magnitude; }
};

struct CheckedSums {
  CheckedSum below, above, inside;
};

}  // namespace

std::string sums_difference(std::span<const float> x, std::span<const float> dy,
                            std::span<const quantize::Affine<float>> grids, std::span<const fake_quant_sums> got) {
  std::vector<CheckedSums> all(grids.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const quantize::Affine<float>& grid = grids[i % grids.size()];
    CheckedSums& sums = all[i % grids.size()];
    if (grid.empty()) continue;
    if (x[i] < grid.nudged_min)
      sums.below.add(dy[i]);
    else if (x[i] > grid.nudged_max)
      sums.above.add(dy[i]);
    else if (x[i] >= grid.nudged_min)
      sums.inside.add(double{dy[i]} * (quantize::fake_quantize(grid, x[i]) - x[i]));
  }
  for (std::size_t c = 0; c < grids.size(); ++c) {
    const auto& [below, above, inside] = all[c];
    if (below.agrees(got[c].below) && above.agrees(got[c].above) && inside.agrees(got[c].inside)) continue;
    return concat("sums of channel ", c, ": expected below ", below.sum, ", above ", above.sum, ", inside ", inside.sum,
                  ", got ", got[c].below, ", ", got[c].above, ", ", got[c].inside);
  }
  return {};
}

}  // namespace miniqat::benchmarks
