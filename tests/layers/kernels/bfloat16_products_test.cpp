// Convolutions of bfloat16 beside the reference loops: of small integers, whose sums are exact in any order.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/kernels/onednn.h"
#include "core/kernels/scratch.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/kernels/bfloat16_factors.h"
#include "layers/reference/conv2d.h"
#include "tests/layers/convolution_case.h"

namespace miniqat::layers::bfloat16_products_test {
namespace {

using testing::ConvolutionCase;

/// The same integers in double and, in memory that is guarded if any is, in bfloat16.
struct Integers {
  explicit Integers(std::int64_t n, std::uint64_t key)
      : doubles(static_cast<std::size_t>(n)), rounded(scope.take<Bfloat16>(doubles.size())) {
    Random random(key);
    for (std::size_t i = 0; i < doubles.size(); ++i) {
      doubles[i] = std::round(random.uniform(-9, 9));
      rounded[i] = Bfloat16::rounded(static_cast<float>(doubles[i]));
    }
  }
  ScratchScope scope;
  std::vector<double> doubles;
  std::span<Bfloat16> rounded;
};

void expect_equal(std::span<const float> got, const std::vector<double>& wanted, const std::string& what) {
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(got[i], wanted[i]) << what << ", element " << i;
}

void check_convolution(const ConvolutionCase& of, std::int64_t in, std::int64_t out) {
  const Shape x_shape = of.x(in), filter_shape = of.filter(in, out);
  const reference::Convolution reference = of.reference(in, out);
  const onednn::Convolution convolution = of.fast(in, out);
  const Shape& y_shape = convolution.output;
  const Integers x(x_shape.elements(), 1), filter(filter_shape.elements(), 2), d_y(y_shape.elements(), 3);
  const auto compare = [&](const std::string& what, const Shape& shape, const auto& fast, const auto& slow) {
    ScratchScope scope;
    const std::span<float> got = scope.filled<float>(static_cast<std::size_t>(shape.elements()), NAN);
    std::vector<double> wanted(got.size());
    slow(std::span<double>(wanted));
    // A second time with kernels that are there already.
    for (int turn = 0; turn < 2; ++turn) {
      fast(got.data());
      expect_equal(got, wanted, miniqat::concat(what, " of ", of.text(in, out)));
    }
  };
  compare(
      "forward", y_shape, [&](float* y) { onednn::convolve(convolution, x.rounded.data(), filter.rounded.data(), y); },
      [&](auto y) { reference::conv2d(reference, x.doubles.data(), filter.doubles.data(), y); });
  compare(
      "input gradient", x_shape,
      [&](float* d_x) { onednn::convolve_backward_input(convolution, d_y.rounded.data(), filter.rounded.data(), d_x); },
      [&](auto d_x) { reference::conv2d_backward_input(reference, d_y.doubles.data(), filter.doubles.data(), d_x); });
  compare(
      "filter gradient", filter_shape,
      [&](float* d_filter) {
        onednn::convolve_backward_filter(convolution, x.rounded.data(), d_y.rounded.data(), d_filter);
      },
      [&](auto d_filter) {
        reference::conv2d_backward_filter(reference, x.doubles.data(), d_y.doubles.data(), d_filter);
      });
}

class Bfloat16Products : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn::has_bfloat16()) GTEST_SKIP() << "this processor has no products of bfloat16";
  }
  void TearDown() override { set_thread_count(threads_); }

 private:
  const int threads_ = thread_count();
};

TEST_F(Bfloat16Products, ConvolutionsAreExact) {
  testing::for_odd_convolutions(
      [](const ConvolutionCase& of, std::int64_t in, std::int64_t out) { check_convolution(of, in, out); });
}

/// Version 2.6 of oneDNN has no right kernel for these gradients: dilated rows of many channels (AMX), rows that are
/// narrower than the stride.
TEST_F(Bfloat16Products, ConvolutionsWithoutAKernelAreExact) {
  check_convolution({{2, 11, 5}, {3, 1}, {.dilations = {2, 1}}}, 40, 9);
  check_convolution({{3, 12, 12}, {3, 3}, {.dilations = {3, 2}}}, 64, 32);
  check_convolution({{2, 8, 2}, {2, 3}, {.strides = {1, 3}}}, 64, 3);
  check_convolution({{4, 9, 1}, {1, 2}, {.strides = {1, 2}, .padding = Padding::kExplicit, .pads = {0, 0, 0, 1}}}, 16,
                    16);
}

TEST(Bfloat16Factors, AreRoundedToEven) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, float>> cases = {{0, 0},
                                                      {1, 1},
                                                      {-255, -255},
                                                      {1 + 0x1p-8f, 1},
                                                      {1 + 0x1.8p-8f, 1 + 0x1p-7f},
                                                      {1 + 0x1.8p-7f, 1 + 0x1p-6f},
                                                      {0x1.ffp+127f, kInfinity},
                                                      {-kInfinity, -kInfinity},
                                                      {0x1p-140f, 0}};
  std::vector<float> numbers;
  for (int turn = 0; turn < 10; ++turn)
    for (const auto& [number, nearest] : cases) numbers.push_back(number);
  numbers.push_back(std::bit_cast<float>(0x7f800001u));
  ScratchScope scope;
  const Bfloat16* rounded = rounded_to_bfloat16(numbers.data(), std::ssize(numbers), scope);
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    const float got = rounded[i].number(), wanted = cases[i % cases.size()].second;
    // Of denormal numbers the sign and the size are enough.
    EXPECT_TRUE(got == wanted || std::abs(got - wanted) < 0x1p-130f) << numbers[i] << " is " << got;
    EXPECT_EQ(rounded[i].bits, Bfloat16::rounded(numbers[i]).bits);
  }
  EXPECT_TRUE(std::isnan(rounded[numbers.size() - 1].number()));
}

/// d_y by the channel's scale, codes less their zero points, and the way back.
TEST(Bfloat16Factors, OfIntegersAreExact) {
  const std::int64_t columns = 3, rows = 150, pixels = 301;
  const auto packed = [](const PackedForm& form, std::span<const CodeGrid> grids) {
    Tensor bytes(form.spec());
    for (std::int64_t i = 0; i < form.elements; ++i)
      bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37 % 256);
    std::ranges::copy(grids, packed_grids(form, bytes).begin());
    return bytes;
  };
  const std::vector<CodeGrid> x_grid = {{0.25f, 13}}, w_grids = {{0.1f, 128}, {0.003f, 0}, {7.0f, 255}};
  const PackedForm x_form = {.elements = pixels}, w_form = {.elements = rows * columns, .grids = columns};
  const Tensor x_bytes = packed(x_form, x_grid), w_bytes = packed(w_form, w_grids);
  std::vector<float> d_y(static_cast<std::size_t>(columns * 100));
  Random random(1);
  for (float& number : d_y) number = random.normal();
  ScratchScope scope;
  const PackedGradientFactors factors({x_form, x_bytes}, {w_form, w_bytes}, d_y.data(), std::ssize(d_y), columns,
                                      scope);
  for (std::size_t i = 0; i < d_y.size(); ++i)
    ASSERT_EQ(factors.d_output()[i].bits, Bfloat16::rounded(d_y[i] * w_grids[i % 3].scale).bits) << i;
  const Bfloat16 *x = factors.x(), *filter = factors.filter();
  for (std::int64_t i = 0; i < pixels; ++i) ASSERT_EQ(x[i].number(), x_bytes.data<std::uint8_t>()[i] - 13) << i;
  for (std::int64_t i = 0; i < w_form.elements; ++i)
    ASSERT_EQ(filter[i].number(), w_bytes.data<std::uint8_t>()[i] - w_grids[i % 3].zero_point) << i;
  std::vector<float> sums(static_cast<std::size_t>(w_form.elements), 2.0f);
  factors.scale(sums.data());
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], 2.0f * (0.25f / w_grids[i % 3].scale)) << i;
}

}  // namespace
}  // namespace miniqat::layers::bfloat16_products_test
