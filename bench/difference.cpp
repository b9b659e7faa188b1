#include "bench/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "core/text/error.h"

namespace miniqat::bench {
namespace {

bool same_float(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// All digits that tell it from its neighbours.
std::string float_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return std::isnan(value) ? "nan" : text;
}

std::string floats_text(std::span<const float> values, std::size_t first, std::size_t last) {
  std::string text;
  for (std::size_t i = first; i <= last; ++i) text += " " + float_text(values[i]);
  return text;
}

/// How far x is above the grid's begin: at ties between two numbers, a half.
std::string steps_text(float x, const quantize::Affine<float>& grid) {
  if (!(x >= grid.nudged_min && x <= grid.nudged_max) || grid.nudged_min == grid.nudged_max) return {};
  return concat(" (", float_text((x - grid.nudged_min) / grid.scale), " steps above nudged_min)");
}

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

std::string difference(const Comparison& all) {
  std::size_t i = 0;
  while (i < all.got.size() && same_float(all.got[i], all.expected[i])) ++i;
  if (i == all.got.size()) return {};
  constexpr std::size_t kAround = 2;
  const std::size_t first = i < kAround ? 0 : i - kAround, last = std::min(i + kAround, all.got.size() - 1);
  std::string text = concat("element ", i, " of ", all.got.size());
  if (all.grids.size() > 1) text += concat(" (channel ", i % all.grids.size(), ")");
  text += concat(": expected ", float_text(all.expected[i]), ", got ", float_text(all.got[i]),
                 " for x = ", float_text(all.x[i]),
                 all.grids.empty() ? "" : steps_text(all.x[i], all.grids[i % all.grids.size()]), "; elements ", first,
                 " to ", last, ": x", floats_text(all.x, first, last), ", expected",
                 floats_text(all.expected, first, last), ", got", floats_text(all.got, first, last));
  if (all.grids.empty()) return text;
  const quantize::Affine<float>& grid = all.grids[i % all.grids.size()];
  return text + concat("; grid: scale ", float_text(grid.scale), ", zero_point ", float_text(grid.zero_point),
                       ", quant_min ", float_text(grid.quant_min), ", nudged_min ", float_text(grid.nudged_min),
                       ", nudged_max ", float_text(grid.nudged_max));
}

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

}  // namespace miniqat::bench
