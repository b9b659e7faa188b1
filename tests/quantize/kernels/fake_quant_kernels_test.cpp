#include "quantize/kernels/fake_quant_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "quantize/reference/fake_quant.h"
#include "tests/fewer_cases.h"

namespace miniqat::quantize::fake_quant_kernels_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A tensor of `rows` x `channels` with its grids; values within, at and beyond the grids' ends, NaNs and infinities.
struct Case {
  Case(std::int64_t rows, std::int64_t channels, const GridOptions& options) : n(rows * channels) {
    Random random(mix(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(channels)));
    for (std::int64_t c = 0; c < channels; ++c) {
      Range<float> range{-2 * random.uniform(), 3 * random.uniform()};
      if (c % 11 == 5) range = {0, 0};
      // The first channel, too, of some.
      if ((c + channels) % 11 == 7) range = {kNan, kNan};
      grids.push_back(grid_of(range, options));
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const Affine<float>& grid = grids[i % channels];
      // Halfway between two numbers on the grid, where the last bit decides.
      const float tie = grid.nudged_min + (static_cast<float>(random.below(1u << options.bits)) + 0.5f) * grid.scale;
      const float special[] = {kNan, kInfinity, -kInfinity, grid.nudged_min,           grid.nudged_max,           -0.0f,
                               0.0f, 1e-42f,    tie,        std::nextafter(tie, 9.0f), std::nextafter(tie, -9.0f)};
      const std::uint64_t pick = random.below(40);
      x.push_back(pick < std::size(special) ? special[pick] : random.uniform(-3, 4));
      dy.push_back(random.uniform(-1, 1));
    }
  }
  std::span<const Affine<float>> grid_span() const { return grids; }

  std::int64_t n;
  std::vector<Affine<float>> grids;
  std::vector<float> x;
  std::vector<float> dy;
};

/// Bit by bit, but for the payload of NaNs.
void expect_same(const std::vector<float>& fast, const std::vector<float>& reference, const std::string& what) {
  ASSERT_EQ(fast.size(), reference.size()) << what;
  for (std::size_t i = 0; i < fast.size(); ++i) {
    const bool same = std::isnan(reference[i])
                          ? std::isnan(fast[i])
                          : std::bit_cast<std::uint32_t>(fast[i]) == std::bit_cast<std::uint32_t>(reference[i]);
    if (same) continue;
    FAIL() << what << ", element " << i << " of " << fast.size() << ": " << fast[i] << ", reference " << reference[i];
  }
}

template <class Body>
void for_cases(const Body& body) {
  // The reference flushes denormals as the kernels do: an input of 1e-42 lies above a grid that ends at 0, or not.
  const FlushDenormals flushed;
  testing::OneIn chosen(4);
  const auto check = [&](std::int64_t rows, std::int64_t channels, const GridOptions& options) {
    if (!chosen()) return;
    const std::string what = std::to_string(rows) + "x" + std::to_string(channels) + ", " +
                             std::to_string(options.bits) + " bits" + (options.narrow_range ? ", narrow" : "") +
                             (options.symmetric ? ", symmetric" : "") + ", " + std::to_string(thread_count()) +
                             " threads";
    if (!::testing::Test::HasFatalFailure()) body(Case(rows, channels, options), what);
  };
  set_thread_count(1);
  for (int bits = 2; bits <= 16; ++bits)
    for (bool narrow : {false, true})
      for (bool symmetric : {false, true}) check(70, 7, {.bits = bits, .narrow_range = narrow, .symmetric = symmetric});
  // Around the ends of vectors, rows and masks.
  for (std::int64_t channels : {1, 2, 3, 7, 16, 17, 33, 65, 1000})
    for (std::int64_t rows : {0, 1, 2, 17, 40, 511, 512, 513}) check(rows, channels, {.bits = 8});
  // Several tiles a thread, several threads a tensor.
  for (int threads : {1, 2, 3, 7}) {
    set_thread_count(threads);
    check(300'001, 1, {.bits = 8});
    check(20'001, 33, {.bits = 4});
    check(601, 1000, {.bits = 8});
  }
}

std::vector<double> parts_of(const std::vector<RangeSums>& sums) {
  std::vector<double> parts;
  for (const RangeSums& sum : sums) parts.insert(parts.end(), {sum.below, sum.above, sum.inside});
  return parts;
}

TEST(FakeQuantKernels, ForwardIsTheReferenceBitForBit) {
  for_cases([](const Case& c, const std::string& what) {
    std::vector<float> expected(c.n), y(c.n, kNan), x = c.x;
    reference::fake_quant_forward<float>(c.x, c.grid_span(), expected.data());
    ScratchScope scope;
    const ChannelGrids grids = channel_grids(c.grids, scope);
    fake_quant_forward(c.x.data(), y.data(), c.n, grids, nullptr);
    expect_same(y, expected, what);
    fake_quant_forward(x.data(), x.data(), c.n, grids, nullptr);
    expect_same(x, expected, what + ", in place");
  });
}

TEST(FakeQuantKernels, PieceIsTheReferenceBitForBit) {
  for_cases([](const Case& c, const std::string& what) {
    std::vector<float> expected(c.n), x = c.x;
    reference::fake_quant_forward<float>(c.x, c.grid_span(), expected.data());
    ScratchScope scope;
    fake_quant_piece(x.data(), x.data(), c.n, channel_grids(c.grids, scope));
    expect_same(x, expected, what);
    if (c.grids.size() > 1) return;
    x = c.x;
    fake_quant_piece(x.data(), x.data(), c.n, c.grids[0]);
    expect_same(x, expected, what + ", one grid");
  });
}

TEST(FakeQuantKernels, MaskedBackwardIsTheReferenceBitForBit) {
  for_cases([](const Case& c, const std::string& what) {
    std::vector<float> expected(c.n), expected_y(c.n), y = c.x, dx(c.n, kNan), dy = c.dy;
    reference::fake_quant_forward<float>(c.x, c.grid_span(), expected_y.data());
    reference::fake_quant_backward<float>(c.x, c.dy.data(), c.grid_span(), expected.data(), nullptr, nullptr);
    std::vector<std::uint32_t> mask(mask_words(c.n), 0xdeadbeef);
    ScratchScope scope;
    fake_quant_forward(y.data(), y.data(), c.n, channel_grids(c.grids, scope), mask.data());
    expect_same(y, expected_y, what + ", forward with mask");
    fake_quant_backward(c.dy.data(), dx.data(), c.n, mask.data());
    expect_same(dx, expected, what);
    fake_quant_backward(dy.data(), dy.data(), c.n, mask.data());
    expect_same(dy, expected, what + ", in place");
  });
}

TEST(FakeQuantKernels, BackwardFromXIsTheReference) {
  for_cases([](const Case& c, const std::string& what) {
    const std::size_t channels = c.grids.size();
    std::vector<float> expected(c.n), d_min(channels), d_max(channels);
    reference::fake_quant_backward<float>(c.x, c.dy.data(), c.grid_span(), expected.data(), d_min.data(), d_max.data());
    std::vector<float> dx = c.dy;
    std::vector<RangeSums> sums(channels, {kNan, kNan, kNan});
    ScratchScope scope;
    fake_quant_backward(c.x.data(), dx.data(), c.n, channel_grids(c.grids, scope), dx.data(), sums, true);
    expect_same(dx, expected, what);
    for (std::size_t i = 0; i < channels; ++i) {
      // Both sum in double, in another order.
      ASSERT_NEAR(sums[i].below, d_min[i], 1e-6 * (1 + std::abs(d_min[i]))) << what << ", channel " << i;
      ASSERT_NEAR(sums[i].above, d_max[i], 1e-6 * (1 + std::abs(d_max[i]))) << what << ", channel " << i;
      double inside = 0, size = 0;
      for (std::int64_t k = static_cast<std::int64_t>(i); k < c.n; k += static_cast<std::int64_t>(channels)) {
        const Affine<float>& grid = c.grids[i];
        if (grid.empty() || !gradient_passes(grid, c.x[k])) continue;
        inside += double{c.dy[k]} * (fake_quantize(grid, c.x[k]) - c.x[k]);
        size += std::abs(c.dy[k]) * grid.scale;
      }
      ASSERT_NEAR(sums[i].inside, inside, 1e-6 * (1e-30 + size)) << what << ", channel " << i;
    }
  });
}

TEST(FakeQuantKernels, RangeSumsAreTheSameForAnyNumberOfThreads) {
  Case c(20'001, 33, {.bits = 8});
  // Next to these, the order of a sum decides over a good part of the other digits.
  for (std::int64_t i = 0; i < c.n; i += 101) c.dy[i] = i % 2 == 0 ? 0x1p40f : -0x1p40f;
  ScratchScope scope;
  const ChannelGrids grids = channel_grids(c.grids, scope);
  const auto sums_with = [&](int threads) {
    set_thread_count(threads);
    std::vector<RangeSums> sums(33);
    fake_quant_backward(c.x.data(), c.dy.data(), c.n, grids, nullptr, sums, true);
    return parts_of(sums);
  };
  const std::vector<double> first = sums_with(1);
  for (int threads : {2, 3, 7}) EXPECT_EQ(sums_with(threads), first) << threads;
}

TEST(FakeQuantKernels, BackwardGivesWhatIsAskedFor) {
  const Case c(100, 3, {.bits = 4});
  ScratchScope scope;
  const ChannelGrids grids = channel_grids(c.grids, scope);
  std::vector<RangeSums> all(3), ends(3), alone(3);
  std::vector<float> dx(c.n), only_dx(c.n), dx_and_ends(c.n);
  fake_quant_backward(c.x.data(), c.dy.data(), c.n, grids, dx.data(), all, true);
  fake_quant_backward(c.x.data(), c.dy.data(), c.n, grids, dx_and_ends.data(), ends, false);
  fake_quant_backward(c.x.data(), c.dy.data(), c.n, grids, nullptr, alone, true);
  fake_quant_backward(c.x.data(), c.dy.data(), c.n, grids, only_dx.data(), {}, false);
  EXPECT_NE(all[0].below, 0);
  EXPECT_NE(all[0].above, 0);
  EXPECT_NE(all[0].inside, 0);
  EXPECT_EQ(parts_of(alone), parts_of(all));
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(ends[k].below, all[k].below);
    EXPECT_EQ(ends[k].above, all[k].above);
    EXPECT_EQ(ends[k].inside, 0);
  }
  EXPECT_EQ(only_dx, dx);
  EXPECT_EQ(dx_and_ends, dx);
}

TEST(FakeQuantKernels, NothingToDoForNothing) {
  const ChannelGrids none;
  fake_quant_forward(nullptr, nullptr, 0, none, nullptr);
  fake_quant_backward(nullptr, nullptr, 0, none, nullptr, {}, false);
  std::vector<RangeSums> sums(2, {kNan, kNan, kNan});
  ScratchScope scope;
  const std::vector<Affine<float>> two(2);
  fake_quant_backward(nullptr, nullptr, 0, channel_grids(two, scope), nullptr, sums, true);
  EXPECT_EQ(parts_of(sums), std::vector<double>(6, 0));
  EXPECT_EQ(mask_words(0), 0);
  EXPECT_EQ(mask_words(512), 16);
  EXPECT_EQ(mask_words(513), 32);
}

}  // namespace
}  // namespace miniqat::quantize::fake_quant_kernels_test
