#include "core/kernels/onednn.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"

namespace miniqat::onednn::onednn_test {
namespace {

TEST(OneDnn, MultipliesStridedMatrices) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {1, 10, 100};
  std::vector<float> product(2);
  multiply(Matrix::row_major(a.data(), 2, 3), Matrix::row_major(b.data(), 3, 1), product.data());
  EXPECT_EQ(product, (std::vector<float>{321, 654}));
  // The first two columns only: rows lie further apart than they are long.
  multiply({.data = a.data(), .rows = 2, .columns = 2, .row_stride = 3}, Matrix::row_major(b.data(), 2, 1),
           product.data());
  EXPECT_EQ(product, (std::vector<float>{21, 54}));
  // The same extents without the gap are another kernel.
  multiply(Matrix::row_major(a.data(), 2, 2), Matrix::row_major(b.data(), 2, 1), product.data());
  EXPECT_EQ(product, (std::vector<float>{21, 43}));
  std::vector<float> transposed(3);
  multiply(Matrix::row_major(a.data(), 2, 3).transposed(), Matrix::row_major(b.data(), 2, 1), transposed.data());
  EXPECT_EQ(transposed, (std::vector<float>{41, 52, 63}));
}

Convolution same_5x5(std::int64_t size, std::int64_t in, std::int64_t out) {
  return {.input = {16, size, size, in},
          .filter = {5, 5, in, out},
          .output = {16, size, size, out},
          .pad_before = {2, 2},
          .pad_after = {2, 2}};
}

void run_all(const Convolution& c) {
  const std::vector<float> input(c.input.elements(), 1);
  const std::vector<float> filter(c.filter.elements(), 1);
  std::vector<float> output(c.output.elements());
  std::vector<float> d_input(c.input.elements());
  std::vector<float> d_filter(c.filter.elements());
  convolve(c, input.data(), filter.data(), output.data());
  convolve_backward_input(c, output.data(), filter.data(), d_input.data());
  convolve_backward_filter(c, input.data(), output.data(), d_filter.data());
  // The middle of an image of ones sees the whole filter.
  const std::int64_t middle = c.output[1] / 2 * c.output[2] + c.output[2] / 2;
  const float taps = static_cast<float>(c.filter[0] * c.filter[1] * (c.depthwise ? 1 : c.filter[2]));
  EXPECT_EQ(output[middle * c.output[3]], taps);
}

/// oneDNN of Debian 12 has fast convolutions for x86-64 with AVX2 only.
bool convolutions_are_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

// On plain NHWC images a wrong choice of layouts silently costs a hundredfold.
TEST(OneDnn, ModelsLayersAvoidSlowImplementations) {
  if (!convolutions_are_fast()) GTEST_SKIP() << "a processor without AVX2 has no fast convolutions";
  run_all(same_5x5(28, 1, 32));
  run_all(same_5x5(14, 32, 64));
  run_all({.input = {16, 32, 32, 3},
           .filter = {3, 3, 3, 32},
           .output = {16, 16, 16, 32},
           .strides = {2, 2},
           .pad_after = {1, 1}});
  run_all({.input = {16, 16, 16, 32},
           .filter = {3, 3, 32, 1},
           .output = {16, 16, 16, 32},
           .pad_before = {1, 1},
           .pad_after = {1, 1},
           .depthwise = true});
  run_all({.input = {16, 16, 16, 32}, .filter = {1, 1, 32, 64}, .output = {16, 16, 16, 64}});
  const auto kernels = compiled_kernels();
  EXPECT_GE(kernels.size(), 15u);
  for (const auto& [operation, implementation] : kernels) {
    EXPECT_EQ(implementation.find("ref"), std::string::npos) << operation << ": " << implementation;
    if (operation.starts_with("conv") || operation.starts_with("depthwise")) {
      EXPECT_EQ(implementation.find("gemm"), std::string::npos) << operation << ": " << implementation;
    }
  }
}

TEST(OneDnn, RefusalsNameTheOperation) {
  // 5 columns do not follow from 3 with a 1x1 filter.
  const Convolution wrong = {.input = {1, 3, 3, 1}, .filter = {1, 1, 1, 1}, .output = {1, 3, 5, 1}};
  const std::vector<float> input(9);
  const std::vector<float> filter(1);
  std::vector<float> output(15);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      convolve(wrong, input.data(), filter.data(), output.data());
      FAIL() << "an impossible output was accepted";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("convolution of [1,3,3,1] with [1,1,1,1] to [1,3,5,1]"), std::string::npos) << text;
    }
  }
}

TEST(OneDnn, ManyShapesDoNotPileUp) {
  std::vector<float> values(1100, 1);
  std::vector<float> product(1);
  for (std::int64_t k = 1; k <= 1100; ++k) {
    multiply(Matrix::row_major(values.data(), 1, k), Matrix::row_major(values.data(), k, 1), product.data());
    ASSERT_EQ(product[0], static_cast<float>(k));
  }
  EXPECT_LE(compiled_kernels().size(), 1024u);
}

}  // namespace
}  // namespace miniqat::onednn::onednn_test
