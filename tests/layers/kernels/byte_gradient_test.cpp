// Gradients from bytes: their sums to the bit, and the bytes by their definition.

#include "layers/reference/byte_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/engine/session.h"
#include "core/kernels/onednn_bytes.h"
#include "core/kernels/scratch.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "layers/kernels/byte_gradient.h"
#include "layers/reference/conv2d.h"
#include "tests/layers/convolution_case.h"

namespace miniqat::layers::byte_gradient_test {
namespace {

using testing::ConvolutionCase;

/// In memory that is guarded if any is, and in double.
template <class Byte>
struct Bytes {
  /// Numbers from `low` to `high`, or these two alone.
  Bytes(std::int64_t n, int low, int high, bool extreme, std::uint64_t key)
      : bytes(scope.take<Byte>(static_cast<std::size_t>(n))) {
    Random random(key);
    for (Byte& byte : bytes) {
      const auto number = extreme ? (random.below(2) == 0 ? low : high)
                                  : low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
      byte = static_cast<Byte>(number);
      doubles.push_back(number);
    }
  }
  ScratchScope scope;
  std::span<Byte> bytes;
  std::vector<double> doubles;
};

std::vector<float> drawn(std::int64_t n, std::uint64_t key) {
  std::vector<float> numbers(static_cast<std::size_t>(n));
  Random random(key);
  for (float& number : numbers) number = random.normal();
  return numbers;
}

void check_sums(const ConvolutionCase& of, std::int64_t in, std::int64_t out, bool extreme) {
  SCOPED_TRACE(miniqat::concat(of.text(in, out), ", ", thread_count(), " threads", extreme ? ", extremes" : ""));
  const Shape x_shape = of.x(in), filter_shape = of.filter(in, out);
  const reference::Convolution reference = of.reference(in, out);
  const onednn::Convolution convolution = of.fast(in, out);
  const Shape& y_shape = convolution.output;
  constexpr std::uint8_t kZero = 131;
  const Bytes<std::uint8_t> x(x_shape.elements(), 0, 255, extreme, 1);
  const Bytes<std::int8_t> filter(filter_shape.elements(), -128, 127, extreme, 2),
      d_y(y_shape.elements(), -127, 127, extreme, 3);
  ScratchScope scope;
  // A second time with kernels that are there already.
  for (int turn = 0; turn < 2; ++turn) {
    const std::span<std::int32_t> d_x = scope.filled<std::int32_t>(x.bytes.size(), -1);
    onednn::convolve_backward_input(convolution, d_y.bytes.data(), filter.bytes.data(), d_x.data());
    std::vector<double> wanted(d_x.size());
    reference::conv2d_backward_input<double>(reference, d_y.doubles.data(), filter.doubles.data(), wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(d_x[i], wanted[i]) << "of the input, element " << i;

    const std::span<float> d_filter = scope.filled<float>(filter.bytes.size(), NAN);
    std::vector<float> scales;
    for (std::int64_t c = 0; c < out; ++c) scales.push_back(std::ldexp(1.0f, static_cast<int>(c % 5) - 2));
    onednn::convolve_backward_filter(convolution, x.bytes.data(), kZero, d_y.bytes.data(), scales.data(),
                                     d_filter.data());
    std::vector<double> less_zero = x.doubles, sums(d_filter.size());
    for (double& number : less_zero) number -= kZero;
    reference::conv2d_backward_filter<double>(reference, less_zero.data(), d_y.doubles.data(), sums);
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_EQ(d_filter[i], static_cast<float>(sums[i]) * scales[i % scales.size()]) << "of the filter, element " << i;
  }
}

class ByteGradientSums : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_int8_products()) GTEST_SKIP() << "this processor has no exact products of signed bytes";
  }
  void TearDown() override { set_thread_count(threads_); }

 private:
  const int threads_ = thread_count();
};

TEST_F(ByteGradientSums, OfConvolutionsAreExact) {
  testing::for_odd_convolutions([](const ConvolutionCase& of, std::int64_t in, std::int64_t out) {
    check_sums(of, in, out, thread_count() == 2);
  });
}

/// 2 * 80 * 80 * 4 * 255 * 128 products leave 32 bits: parts of them are added up in 64.
TEST_F(ByteGradientSums, OfManyPixelsAreExact) {
  set_thread_count(2);
  check_sums({{8, 80, 80}, {3, 3}, {}}, 1, 2, true);
  check_sums({{8, 80, 80}, {1, 1}, {}}, 2, 3, true);
}

/// A factor on random grids, and its integers less their zero points.
struct Packed {
  Packed(PackedForm of, std::uint64_t key) : form(of), bytes(of.spec()), integers(of.elements) {
    Random random(key);
    const bool centred = of.lowest == -of.middle + 1;
    for (CodeGrid& grid : packed_grids(form, bytes))
      grid = {random.uniform(0.01f, 0.9f), static_cast<float>(centred ? of.middle : random.below(256))};
    for (std::int64_t i = 0; i < of.elements; ++i) {
      const auto code = static_cast<std::uint8_t>(centred ? 1 + random.below(255) : random.below(256));
      set(i, code);
    }
  }
  CodeGrid& grid(std::int64_t i) { return packed_grids(form, bytes)[static_cast<std::size_t>(i % form.grids)]; }
  void set(std::int64_t i, std::uint8_t code) {
    bytes.data<std::uint8_t>()[i] = code;
    integers[static_cast<std::size_t>(i)] = code - grid(i).zero_point;
  }
  /// Channel c has nothing but zeros.
  void clear(std::int64_t c, float scale) {
    grid(c).scale = scale;
    for (std::int64_t i = c; i < form.elements; i += form.grids) set(i, static_cast<std::uint8_t>(grid(c).zero_point));
  }
  PackedForm form;
  Tensor bytes;
  std::vector<double> integers;
};

/// To the bit. With channels of zeros: one has the grid of an empty range, the other the finest of all.
void check_layer(const ConvolutionCase& of, std::int64_t in, std::int64_t out, bool centred) {
  constexpr std::uint64_t kKey = 0x123456789abcdef;
  constexpr std::int64_t kFirst = 1000;
  const onednn::Convolution convolution = of.fast(in, out);
  const reference::Convolution reference = of.reference(in, out);
  Packed x({.elements = of.x(in).elements(), .lowest = -255, .highest = 255, .middle = 128}, 1);
  Packed filter({.elements = of.filter(in, out).elements(),
                 .grids = out,
                 .lowest = centred ? -127 : -255,
                 .highest = centred ? 127 : 255,
                 .middle = 128},
                2);
  std::vector<bool> only_zeros(static_cast<std::size_t>(out));
  for (std::int64_t c = 1; c < std::min<std::int64_t>(out, 3); ++c) {
    filter.clear(c, c == 1 ? 1 : 0.001f);
    only_zeros[static_cast<std::size_t>(c)] = true;
  }
  std::vector<float> scales;
  for (std::int64_t c = 0; c < out; ++c) scales.push_back(filter.grid(c).scale);
  scales = reference::gradient_scales(scales, only_zeros);
  ASSERT_TRUE(has_exact_byte_gradients(convolution, filter.form));
  Tensor d_y(convolution.output), d_x(of.x(in)), d_filter(of.filter(in, out));
  std::ranges::copy(drawn(d_y.elements(), 3), d_y.data<float>());
  const auto bytes = reference::byte_gradient(d_y.values<float>(), of.images[0], scales, kKey, kFirst);
  byte_backward(convolution, {x.form, x.bytes}, {filter.form, filter.bytes}, d_y.data<float>(), kKey, kFirst, &d_x,
                &d_filter);
  std::vector<double> sums(x.integers.size());
  const std::vector<double> for_input(bytes.for_input.begin(), bytes.for_input.end()),
      for_filter(bytes.for_filter.begin(), bytes.for_filter.end());
  reference::conv2d_backward_input<double>(reference, for_input.data(), filter.integers.data(), sums);
  const std::size_t of_picture = sums.size() / bytes.input_steps.size();
  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(d_x.data<float>()[i], static_cast<float>(sums[i]) * bytes.input_steps[i / of_picture]) << i;
  sums.assign(filter.integers.size(), 0);
  reference::conv2d_backward_filter<double>(reference, x.integers.data(), for_filter.data(), sums);
  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(d_filter.data<float>()[i],
              static_cast<float>(sums[i]) * (bytes.filter_step * (x.grid(0).scale / scales[i % scales.size()])))
        << i;
}

TEST_F(ByteGradientSums, OfLayersAreThoseOfTheDefinition) {
  testing::for_odd_convolutions([](const ConvolutionCase& of, std::int64_t in, std::int64_t out) {
    for (const bool centred : {false, true}) {
      SCOPED_TRACE(miniqat::concat(of.text(in, out), centred ? ", centred" : ""));
      check_layer(of, in, out, centred);
    }
  });
}

TEST(ByteGradient, StandsForTheGradientInTheMean) {
  constexpr std::int64_t kPictures = 2, kColumns = 3;
  constexpr int kDraws = 4000;
  const std::vector<float> d_y = drawn(kPictures * 4 * kColumns, 1), scales = {0.5, 2, 0.125};
  std::vector<double> input_sums(d_y.size()), filter_sums(d_y.size());
  reference::ByteGradient bytes;
  for (int key = 0; key < kDraws; ++key) {
    bytes = reference::byte_gradient(d_y, kPictures, scales, mix(7, static_cast<std::uint64_t>(key)), 0);
    for (std::size_t i = 0; i < d_y.size(); ++i) {
      input_sums[i] += bytes.for_input[i];
      filter_sums[i] += bytes.for_filter[i];
    }
  }
  for (std::size_t i = 0; i < d_y.size(); ++i) {
    const double g = double{d_y[i]} * scales[i % kColumns];
    const double step = bytes.input_steps[i / (d_y.size() / kPictures)];
    // A draw deviates by at most half a step.
    constexpr double kErrors = 4;
    const double tolerance = kErrors * 0.5 / std::sqrt(double{kDraws});
    EXPECT_NEAR(input_sums[i] / kDraws, g / step, tolerance) << i;
    EXPECT_NEAR(filter_sums[i] / kDraws, g / bytes.filter_step, tolerance) << i;
  }
  // Nothing but the largest reaches the end.
  EXPECT_EQ(*std::ranges::max_element(bytes.for_filter, {}, [](int byte) { return std::abs(byte); }) % 127, 0);
}

TEST(ByteGradient, TakesWhatIsNoNumberAlong) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> d_y = drawn(8, 2);
    d_y[5] = wrong;
    const auto bytes = reference::byte_gradient(d_y, 2, std::vector<float>{1}, 3, 0);
    EXPECT_GT(bytes.input_steps[0], 0);
    EXPECT_TRUE(std::isnan(bytes.input_steps[1]));
    EXPECT_TRUE(std::isnan(bytes.filter_step));
  }
  const auto none = reference::byte_gradient(std::vector<float>(6, 1e-32f), 3, std::vector<float>{1}, 3, 0);
  EXPECT_EQ(none.input_steps, std::vector<float>(3, 0));
  EXPECT_EQ(none.for_filter, std::vector<std::int8_t>(6, 0));
}

}  // namespace
}  // namespace miniqat::layers::byte_gradient_test
