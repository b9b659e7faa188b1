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
/// The same bits, except that any NaN is like any other.
template <class T>
void expect_same(const std::vector<T>& values, const std::vector<T>& expected, const std::string& what) {
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    if (values[i] != values[i] && expected[i] != expected[i]) continue;
    ASSERT_EQ(std::bit_cast<Bits>(values[i]), std::bit_cast<Bits>(expected[i]))
        << what << ", element " << i << " of " << values.size() << ": " << values[i] << ", not " << expected[i];
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

// The loops of every instruction set that this machine has, side by side with the baseline's: the same bits, also where
// the order of a sum decides over the last one.

/// Everything that the loops of one set make of a tensor.
struct Results {
  std::vector<float> rows, masked_forward, dx_by_mask, pulled, dx;
  std::vector<double> below, above, inside;
  std::vector<std::uint32_t> mask;
};

class FakeQuantSets : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void make(std::int64_t channels, std::int64_t n) {
    Random random(mix(static_cast<std::uint64_t>(channels), static_cast<std::uint64_t>(n)));
    grids_.clear();
    for (std::int64_t c = 0; c < channels; ++c) {
      Range<float> range{-random.uniform(), random.uniform()};
      if (c % 7 == 3) range = {0, 0};
      if (c % 7 == 5) range = {kNan, kNan};
      grids_.push_back(grid_of(range, {.bits = 4}));
    }
    x_.resize(n);
    dy_.resize(n);
    const float special[] = {kNan, kInfinity, -kInfinity, -0.0f, 0.0f, 1e-42f};
    for (float& value : x_) {
      const std::uint64_t pick = random.below(40);
      value = pick < std::size(special) ? special[pick] : random.uniform(-1.5f, 1.5f);
    }
    // Of all sizes: sums that took another order would differ.
    for (float& value : dy_) value = random.uniform(-1, 1) * std::exp2(random.uniform(-30, 30));
  }

  Results run(InstructionSet set) const {
    const FakeQuantLoops& loops = fake_quant_loops(set);
    ScratchScope scope;
    const ChannelGrids grids = channel_grids(grids_, scope);
    const auto n = std::ssize(x_);
    const auto width = static_cast<std::size_t>(grids.width);
    Results r;
    r.rows = r.masked_forward = x_;
    r.dx_by_mask = r.dx = dy_;
    r.mask.resize(mask_words(n));
    r.below.resize(width);
    r.above.resize(width);
    r.inside.resize(width);
    (grids_.size() == 1 ? loops.forward_one : loops.forward_rows)(r.rows.data(), r.rows.data(), n, grids);
    // From the middle of a row.
    const std::int64_t place = grids_.size() == 1 ? 0 : 48;
    loops.forward_mask(r.masked_forward.data(), r.masked_forward.data(), n, r.mask.data(), grids, place);
    loops.masked(r.dx_by_mask.data(), r.dx_by_mask.data(), n, r.mask.data());
    r.pulled = dy_;
    loops.gradient_rows(x_.data(), r.dx.data(), r.dx.data(), n, grids, r.below.data(), r.above.data(), r.inside.data(),
                        0);
    loops.gradient_rows(x_.data(), r.pulled.data(), r.pulled.data(), n, grids, nullptr, nullptr, nullptr, 0.3f);
    return r;
  }

  std::vector<Affine<float>> grids_;
  std::vector<float> x_, dy_;
};

TEST_P(FakeQuantSets, GiveTheBitsOfTheBaseline) {
  if (GetParam() > instruction_set()) GTEST_SKIP() << "not on this machine, or capped";
  for (std::int64_t channels : {1, 2, 3, 7, 16, 17, 33, 65, 255, 1000})
    for (std::int64_t n : {0, 1, 15, 511, 512, 513, 5'000, 33'333}) {
      make(channels, n);
      const Results expected = run(InstructionSet::kBaseline);
      const Results results = run(GetParam());
      const std::string what = std::to_string(n) + " elements, " + std::to_string(channels) + " channels";
      expect_same(results.pulled, expected.pulled, "dampened gradient of " + what);
      expect_same(results.rows, expected.rows, "forward of " + what);
      expect_same(results.masked_forward, expected.masked_forward, "forward with mask of " + what);
      expect_same(results.mask, expected.mask, "mask of " + what);
      expect_same(results.dx_by_mask, expected.dx_by_mask, "dx by mask of " + what);
      expect_same(results.dx, expected.dx, "dx of " + what);
      expect_same(results.below, expected.below, "sums below of " + what);
      expect_same(results.above, expected.above, "sums above of " + what);
      expect_same(results.inside, expected.inside, "sums inside of " + what);
    }
}

INSTANTIATE_TEST_SUITE_P(Vectors, FakeQuantSets, ::testing::Values(InstructionSet::kAvx2, InstructionSet::kAvx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace miniqat::quantize::fake_quant_kernels_test
