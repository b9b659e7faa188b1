#include "benchmarks/suite/check/check_input.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "benchmarks/suite/registry/grids.h"
#include "core/error.h"
#include "core/random.h"
#include "core/text/counted.h"

namespace miniqat::benchmarks {
namespace {

using quantize::Affine;
using quantize::GridOptions;
using quantize::Range;

/// On both sides of 0, on one, empty, and far from 1.
constexpr Range<float> kCheckRanges[] = {{-0.8f, 0.7f},    {0, 1},     {-1, 0},          {0, 0},
                                         {-3.3e-3f, 1.7f}, {-100, 37}, {-1e-20f, 2e-20f}};
constexpr std::int64_t kCheckSizes[] = {0,  1,  2,  3,  5,   7,   8,   9,   15,  16,   17,   31,  32,
                                        33, 63, 64, 65, 100, 127, 129, 511, 513, 1023, 1025, 4099};

/// A number that is likely to be wrong.
float special_number(const Affine<float>& grid, const GridOptions& options, Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const float tie = grid.nudged_min + (static_cast<float>(random.below(1u << options.bits)) + 0.5f) * grid.scale;
  const float specials[] = {std::numeric_limits<float>::quiet_NaN(),
                            kInfinity,
                            -kInfinity,
                            kMost,
                            -kMost,
                            0.0f,
                            -0.0f,
                            1e-42f,
                            -1e-42f,
                            grid.nudged_min,
                            grid.nudged_max,
                            std::nextafter(grid.nudged_min, -kInfinity),
                            std::nextafter(grid.nudged_max, kInfinity),
                            tie,
                            tie,
                            std::nextafter(tie, kInfinity),
                            std::nextafter(tie, -kInfinity)};
  return specials[random.below(std::size(specials))];
}

}  // namespace

std::string CheckCase::text() const {
  return concat(options.bits, " bits", options.narrow_range ? ", narrow range" : "",
                options.symmetric ? ", symmetric" : "", options.power_of_two ? ", scale a power of two" : "", ", ",
                counted(channels, "channel"), ", ", counted(n, "element"));
}

std::vector<CheckCase> check_cases() {
  std::vector<CheckCase> cases;
  for (const int bits : {2, 3, 4, 5, 6, 7, 8, 16}) {
    const GridOptions grids[] = {{.bits = bits},
                                 {.bits = bits, .narrow_range = true},
                                 {.bits = bits, .symmetric = true},
                                 {.bits = bits, .power_of_two = true}};
    for (const GridOptions& options : grids)
      for (const std::int64_t channels : {1, 3, 16, 33})
        for (const std::int64_t n : kCheckSizes) cases.push_back({options, channels, n});
  }
  // Long enough for every loop of a kernel that goes in steps of thousands.
  for (const std::int64_t channels : {1, 64, 1000}) cases.push_back({{.bits = 8}, channels, 70'001});
  return cases;
}

CheckInput::CheckInput(const CheckCase& what) {
  Random random(mix(mix(static_cast<std::uint64_t>(what.n), static_cast<std::uint64_t>(what.channels)),
                    static_cast<std::uint64_t>(what.options.bits) * 8 + (what.options.narrow_range ? 4 : 0) +
                        (what.options.symmetric ? 2 : 0) + (what.options.power_of_two ? 1 : 0)));
  const std::uint64_t first = random.below(std::size(kCheckRanges));
  for (std::int64_t c = 0; c < what.channels; ++c) {
    const Range<float>& range = kCheckRanges[(first + static_cast<std::uint64_t>(c)) % std::size(kCheckRanges)];
    grids.push_back(quantize::grid_of(range, what.options));
  }
  plugin_grids = benchmarks::plugin_grids(grids);
  for (std::int64_t i = 0; i < what.n; ++i) {
    const Affine<float>& grid = grids[static_cast<std::size_t>(i % what.channels)];
    const float width = grid.nudged_max - grid.nudged_min;
    const float usual = grid.nudged_min + random.uniform(-0.2f, 1.2f) * (width > 0 ? width : 1);
    x.push_back(random.below(3) == 0 ? special_number(grid, what.options, random) : usual);
    dy.push_back(random.uniform(-1, 1));
  }
}

}  // namespace miniqat::benchmarks
