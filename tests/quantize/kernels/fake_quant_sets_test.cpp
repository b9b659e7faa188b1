// The loops of every instruction set that this machine has, side by side with the baseline's: the same bits, also where
// the order of a sum decides over the last one.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/tensors/random.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::quantize::fake_quant_sets_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Everything that the loops of one set make of a tensor.
struct Results {
  std::vector<float> rows, masked_forward, dx_by_mask, pulled, dx;
  std::vector<double> below, above, inside;
  std::vector<std::uint32_t> mask;
};

/// The same bits, except that any NaN is like any other.
template <class T>
void expect_same(const std::vector<T>& values, const std::vector<T>& expected, const std::string& what) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    if (values[i] != values[i] && expected[i] != expected[i]) continue;
    ASSERT_EQ(std::bit_cast<Bits>(values[i]), std::bit_cast<Bits>(expected[i])) << what << ", element " << i;
  }
}

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
}  // namespace miniqat::quantize::fake_quant_sets_test
