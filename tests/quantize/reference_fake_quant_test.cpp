// The specification of ranges and grids (quantize/reference/fake_quant.h) beside what the fast form takes from affine.h
// and range_training.h: the same bits.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/tensors/random.h"
#include "quantize/range_training.h"
#include "quantize/reference/fake_quant.h"
#include "tests/quantize/grid_options.h"

namespace miniqat::quantize::reference_fake_quant_test {
namespace {

template <class T>
bool same_bits(const Affine<T>& a, const Affine<T>& b) {
  return std::memcmp(&a.scale, &b.scale, sizeof(T)) == 0 && std::memcmp(&a.zero_point, &b.zero_point, sizeof(T)) == 0 &&
         a.quant_min == b.quant_min && a.quant_max == b.quant_max &&
         std::memcmp(&a.nudged_min, &b.nudged_min, sizeof(T)) == 0 &&
         std::memcmp(&a.nudged_max, &b.nudged_max, sizeof(T)) == 0;
}

template <class T>
std::vector<Range<T>> some_ranges() {
  using limits = std::numeric_limits<T>;
  std::vector<Range<T>> ranges = {{0, 0},
                                  {0, 6},
                                  {-6, 6},
                                  {1, 2},
                                  {-2, -1},
                                  {2, 1},
                                  {T(-0.0), T(0.0)},
                                  {-limits::min(), limits::min()},
                                  {0, limits::denorm_min()},
                                  {-limits::min() * 100, limits::min() * 155},
                                  {-limits::max(), limits::max()},
                                  {-limits::max() / 4, limits::max() / 4}};
  Random random(7);
  for (int i = 0; i < 500; ++i) {
    const T unit = static_cast<T>(std::exp(random.uniform(-30, 30)));
    ranges.push_back({-unit * static_cast<T>(random.uniform(0, 1)), unit * static_cast<T>(random.uniform(0, 1))});
    ranges.push_back({-unit, unit});
    ranges.push_back({-unit, unit * static_cast<T>(i)});
  }
  return ranges;
}

template <class T>
void compare_grids() {
  for (const GridOptions& options : testing::all_options())
    for (const Range<T>& range : some_ranges<T>()) {
      const Affine<T> fast = grid_of(range, options), plain = reference::grid(range, options);
      if (std::isnan(fast.scale) && std::isnan(plain.scale)) continue;
      ASSERT_TRUE(same_bits(fast, plain))
          << range.min << ".." << range.max << ", " << options.bits << " bits, narrow " << options.narrow_range
          << ", symmetric " << options.symmetric << ", power of two " << options.power_of_two << ": scale "
          << fast.scale << " and " << plain.scale << ", zero point " << fast.zero_point << " and " << plain.zero_point;
    }
}

TEST(ReferenceFakeQuant, GridsAreThoseOfAffineInFloat) { compare_grids<float>(); }
TEST(ReferenceFakeQuant, GridsAreThoseOfAffineInDouble) { compare_grids<double>(); }

/// What a tensor shows in a step, two channels; now and then something that says nothing.
std::vector<Range<float>> shown(Random& random, int step) {
  std::vector<Range<float>> ranges;
  for (int c = 0; c < 2; ++c) ranges.push_back({random.uniform(-3, 1), random.uniform(1, 5)});
  if (step % 9 == 4) ranges[1] = {-1e-20f, 1e-20f};  // vanishes beside the range before
  if (step % 7 == 3) ranges[1].max = std::numeric_limits<float>::infinity();
  if (step % 5 == 2) ranges[0] = {-0.0f, -0.0f};
  return ranges;
}

bool equal(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(ReferenceFakeQuant, LearnsTheRangesOfUpdateRanges) {
  for (const RangeKind kind : {RangeKind::kMovingAverage, RangeKind::kLastValue, RangeKind::kAllValues})
    for (const GridOptions& options : testing::all_options()) {
      const FakeQuantAttributes attributes = {.bits = options.bits,
                                              .narrow_range = options.narrow_range,
                                              .symmetric = options.symmetric,
                                              .range = kind,
                                              .ema_decay = 0.9};
      Random random(3);
      std::vector<float> min = {-6, -6}, max = {6, 6}, plain_min = min, plain_max = max;
      float count = 0, plain_count = 0;
      for (int step = 0; step < 40; ++step) {
        if (step == 30) count = plain_count = 16777215;  // soon counted to the end
        std::vector<Range<float>> fast = shown(random, step), plain = fast;
        Observation<float> seen{fast, step % 11 == 6}, plainly_seen{plain, step % 11 == 6};
        const bool counts = traits_of(kind).counts_steps;
        update_ranges(attributes, seen, {min, max, counts ? &count : nullptr});
        reference::learn_ranges({kind, 0.9, options}, plainly_seen, plain_min.data(), plain_max.data(),
                                counts ? &plain_count : nullptr);
        ASSERT_TRUE(equal(min, plain_min) && equal(max, plain_max)) << options.bits << " bits, step " << step;
        ASSERT_EQ(count, plain_count);
        for (std::size_t c = 0; c < fast.size(); ++c) {
          if (std::isnan(fast[c].min) && std::isnan(plain[c].max)) continue;
          ASSERT_TRUE(equal({&fast[c].min, 1}, {&plain[c].min, 1}) && equal({&fast[c].max, 1}, {&plain[c].max, 1}));
        }
      }
    }
}

TEST(ReferenceFakeQuant, DampeningGrowsAsInTheFastForm) {
  for (const std::int64_t steps : {0, 1, 2, 100}) {
    const FakeQuantAttributes attributes = {.dampening = 0.3, .dampening_steps = steps};
    for (std::int64_t step = 1; step <= 102; ++step)
      ASSERT_EQ(attributes.dampening_in(step), reference::dampening_at(0.3, steps, step)) << step << " of " << steps;
  }
}

}  // namespace
}  // namespace miniqat::quantize::reference_fake_quant_test
