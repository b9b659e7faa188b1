// Products of matrices of integers, as bytes, bfloat16 and float32, beside sums in double: all of them are exact.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/kernels/onednn.h"
#include "core/kernels/onednn_bytes.h"
#include "core/kernels/onednn_matrix.h"
#include "core/kernels/scratch.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "tests/fewer_cases.h"

namespace miniqat::layers::matrix_products_test {
namespace {

/// [rows, inner] by [inner, columns], each factor stored as it is or transposed, with a gap behind its rows or none.
struct MatrixCase {
  std::int64_t rows, inner, columns;
  bool transpose_a = false, transpose_b = false;
  std::int64_t gap = 0;
  /// All numbers are the smallest or the largest of their type.
  bool extreme = false;

  std::string text() const {
    return miniqat::concat(rows, " x ", inner, " x ", columns, transpose_a ? ", a transposed" : "",
                           transpose_b ? ", b transposed" : "", ", gap ", gap, extreme ? ", extremes, " : ", ",
                           thread_count(), " threads");
  }
};

/// Whole numbers from `low` to `high`, in memory that is guarded if any is, and in double.
template <class T>
class Factor {
 public:
  Factor(std::int64_t rows, std::int64_t columns, bool transposed, const MatrixCase& of, int low, int high,
         std::uint64_t key)
      : height_(transposed ? columns : rows),
        width_(transposed ? rows : columns),
        row_stride_(width_ + of.gap),
        transposed_(transposed),
        numbers_(scope_.take<T>(static_cast<std::size_t>((height_ - 1) * row_stride_ + width_))) {
    Random random(key);
    for (T& number : numbers_) {
      const int drawn = of.extreme ? (random.below(2) == 0 ? low : high)
                                   : low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
      doubles_.push_back(drawn);
      if constexpr (std::is_same_v<T, Bfloat16>)
        number = Bfloat16::rounded(static_cast<float>(drawn));
      else
        number = static_cast<T>(drawn);
    }
  }

  onednn::MatrixOf<T> fast() const { return view(numbers_.data()); }
  onednn::MatrixOf<double> exact() const { return view(doubles_.data()); }

 private:
  template <class Number>
  onednn::MatrixOf<Number> view(const Number* data) const {
    const onednn::MatrixOf<Number> stored = {data, height_, width_, row_stride_, 1};
    return transposed_ ? stored.transposed() : stored;
  }

  ScratchScope scope_;
  std::int64_t height_, width_, row_stride_;
  bool transposed_;
  std::span<T> numbers_;
  std::vector<double> doubles_;
};

std::vector<double> product(const onednn::MatrixOf<double>& a, const onednn::MatrixOf<double>& b) {
  std::vector<double> sums(static_cast<std::size_t>(a.rows * b.columns));
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t i = 0; i < a.columns; ++i) {
      const double left = a.data[r * a.row_stride + i * a.column_stride];
      const double* right = b.data + i * b.row_stride;
      for (std::int64_t c = 0; c < b.columns; ++c)
        sums[static_cast<std::size_t>(r * b.columns + c)] += left * right[c * b.column_stride];
    }
  return sums;
}

template <class A, class B, class Sum>
void check_product(const MatrixCase& of, int a_low, int a_high, int b_low, int b_high) {
  const Factor<A> a(of.rows, of.inner, of.transpose_a, of, a_low, a_high, 1);
  const Factor<B> b(of.inner, of.columns, of.transpose_b, of, b_low, b_high, 2);
  const std::vector<double> wanted = product(a.exact(), b.exact());
  ScratchScope scope;
  // A second time with kernels that are there already.
  for (int turn = 0; turn < 2; ++turn) {
    const std::span<Sum> got = scope.filled<Sum>(wanted.size(), std::numeric_limits<Sum>::lowest());
    onednn::multiply(a.fast(), b.fast(), got.data());
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(got[i], wanted[i]) << of.text() << ", element " << i;
  }
}

class MatrixProducts : public ::testing::Test {
 protected:
  /// Calls check(case) with one, two and three threads: some products of layers, and odd extents at random.
  template <class Check>
  static void for_cases(const Check& check) {
    constexpr std::int64_t kLayers[][3] = {{1, 1, 1},      {3, 17, 5},    {128, 400, 120}, {33, 1024, 40},
                                           {17, 784, 300}, {1, 65, 257},  {45, 63, 69},    {129, 63, 65},
                                           {77, 125, 69},  {77, 126, 69}, {77, 127, 69}};
    constexpr std::array<std::int64_t, 14> kOdd = {1, 2, 3, 7, 8, 15, 17, 31, 33, 63, 65, 127, 129, 255};
    std::vector<MatrixCase> cases;
    Random random(3);
    const auto odd = [&] { return kOdd[random.below(kOdd.size())]; };
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        for (const auto& [rows, inner, columns] : kLayers)
          cases.push_back({rows, inner, columns, transpose_a, transpose_b, 0, false});
        for (std::uint64_t k = testing::fewer(300, 5); k > 0; --k)
          cases.push_back(
              {odd(), odd(), odd(), transpose_a, transpose_b, random.below(2) == 0 ? 0 : odd(), random.below(2) == 0});
      }
    for (std::size_t i = 0; i < cases.size() && !HasFatalFailure(); ++i) {
      set_thread_count(static_cast<int>(1 + i % 3));
      check(cases[i]);
    }
  }
  void TearDown() override { set_thread_count(threads_); }

 private:
  const int threads_ = thread_count();
};

TEST_F(MatrixProducts, OfBytesAreExact) {
  const int exact = onednn::exact_byte();
  if (exact == 0) GTEST_SKIP() << "this processor has no products of bytes";
  for_cases([&](const MatrixCase& of) {
    check_product<std::uint8_t, std::int8_t, std::int32_t>(of, 0, 255, -exact, std::min(exact, 127));
  });
}

TEST_F(MatrixProducts, OfSignedBytesAreExact) {
  if (!onednn::has_signed_bytes()) GTEST_SKIP() << "this processor has no exact products of signed bytes";
  for_cases(
      [](const MatrixCase& of) { check_product<std::int8_t, std::int8_t, std::int32_t>(of, -128, 127, -128, 127); });
}

/// Of so few bits that float32 holds the sums.
TEST_F(MatrixProducts, OfBfloat16AreExact) {
  if (!onednn::has_bfloat16()) GTEST_SKIP() << "this processor has no products of bfloat16";
  for_cases([](const MatrixCase& of) { check_product<Bfloat16, Bfloat16, float>(of, -99, 99, -99, 99); });
}

TEST_F(MatrixProducts, OfFloatsAreExact) {
  for_cases([](const MatrixCase& of) { check_product<float, float, float>(of, -99, 99, -99, 99); });
}

}  // namespace
}  // namespace miniqat::layers::matrix_products_test
