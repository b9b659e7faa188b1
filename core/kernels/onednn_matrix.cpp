#include "core/kernels/onednn_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_kernel.h"
#include "core/kernels/scratch.h"
#include "core/team/team.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::onednn {
namespace {

/// Multiply-adds below which a share costs more than it saves.
constexpr std::int64_t kShare = 1 << 15;
/// Larger products stay with oneDNN's threads: looking for equal bits would take a tenth of a second and more.
constexpr std::int64_t kLargestShared = std::int64_t{1} << 30;
/// Numbers of a factor or of the product: looking takes as much memory again.
constexpr std::int64_t kLargestMatrix = std::int64_t{1} << 24;

template <class T>
dnnl::memory::desc layout(const MatrixOf<T>& m) {
  return {{m.rows, m.columns}, kTypeOf<T>, dnnl::memory::dims{m.row_stride, m.column_stride}};
}

/// `stride`: between the rows of the product.
template <class T>
Key key_of(const MatrixOf<T>& a, const MatrixOf<T>& b, std::int64_t stride) {
  Key key(Operation::kMultiply);
  key.append(static_cast<std::int64_t>(kTypeOf<T>));
  for (const MatrixOf<T>* m : {&a, &b})
    key.append_all(std::array{m->rows, m->columns, m->row_stride, m->column_stride});
  key.append(stride);
  return key;
}

/// a, a left factor, with the numbers of an only row side by side: version 3.7 takes them as if they were, whatever the
/// stride (no other of 20,000 random products was wrong).
template <class T>
MatrixOf<T> with_dense_row(const MatrixOf<T>& a, ScratchScope& scratch) {
  if (a.rows != 1 || a.column_stride == 1) return a;
  const std::span<T> row = scratch.take<T>(static_cast<std::size_t>(a.columns));
  for (std::int64_t i = 0; i < a.columns; ++i) row[static_cast<std::size_t>(i)] = a.data[i * a.column_stride];
  return MatrixOf<T>::row_major(row.data(), 1, a.columns);
}

/// Multiplies in oneDNN's own threads, or inside a part in this one.
template <class T>
void multiply_whole(const MatrixOf<T>& left, const MatrixOf<T>& b, float* product, std::int64_t stride) {
  ScratchScope scratch;
  const MatrixOf<T> a = with_dense_row(left, scratch);
  const Matrix result{product, a.rows, b.columns, stride, 1};
  const auto compile = [&] {
    return Kernel(describe_primitive<dnnl::matmul>(layout(a), layout(b), layout(result)),
                  {{DNNL_ARG_SRC, layout(a)}, {DNNL_ARG_WEIGHTS, layout(b)}, {DNNL_ARG_DST, layout(result), true}});
  };
  const auto describe = [&] {
    return concat("matrix product", std::is_same_v<T, float> ? "" : " in bfloat16", " of [", a.rows, ",", a.columns,
                  a.column_stride == 1 ? "" : "; transposed", "] and [", b.rows, ",", b.columns,
                  b.column_stride == 1 ? "" : "; transposed", "]");
  };
  run(key_of(a, b, stride), describe, compile, TeamParts::kMayWait, {a.data, b.data, product});
}

/// How a product is shared out, each share to one thread: its rows or its columns, which `count` divides. None where
/// oneDNN's threads compute it, which wait, spinning, for one another.
struct Shares {
  bool rows = true;
  int count = 0;
};

template <class T>
void multiply_in_shares(const MatrixOf<T>& a, const MatrixOf<T>& b, float* product, Shares shares, bool first_time) {
  const std::int64_t size = (shares.rows ? a.rows : b.columns) / shares.count;
  run_independent_parts(shares.count, first_time, [&](int part) {
    MatrixOf<T> left = a, right = b;
    const std::int64_t begin = part * size;
    if (shares.rows) {
      left.rows = size;
      left.data += begin * a.row_stride;
    } else {
      right.columns = size;
      right.data += begin * b.column_stride;
    }
    multiply_whole(left, right, product + begin * (shares.rows ? b.columns : 1), b.columns);
  });
}

/// From the first number of a matrix to its last.
template <class T>
std::int64_t extent(const MatrixOf<T>& m) {
  return (m.rows - 1) * m.row_stride + (m.columns - 1) * m.column_stride + 1;
}

/// Numbers in [-0.5, 0.5) whose sums are rounded: fractions of multiples of the golden ratio.
template <class T>
std::vector<T> uneven_numbers(const MatrixOf<T>& m, double offset) {
  std::vector<T> numbers(static_cast<std::size_t>(extent(m)));
  double fraction = offset;
  for (T& number : numbers) {
    fraction += 0.6180339887498949;
    if (fraction >= 1) fraction -= 1;
    const auto uneven = static_cast<float>(fraction - 0.5);
    if constexpr (std::is_same_v<T, float>)
      number = uneven;
    else
      number = T::rounded(uneven);
  }
  return numbers;
}

/// oneDNN's order of sums depends on its version, the instruction set and the shape, so ask it. (Not with the numbers
/// at hand: zeros, or few bits, have the same sums in any order.)
template <class T>
bool have_the_same_bits(const MatrixOf<T>& a, const MatrixOf<T>& b, Shares shares) {
  const std::vector<T> left = uneven_numbers(a, 0.1), right = uneven_numbers(b, 0.7);
  MatrixOf<T> own_a = a, own_b = b;
  own_a.data = left.data();
  own_b.data = right.data();
  std::vector<float> whole(static_cast<std::size_t>(a.rows * b.columns)), shared(whole.size());
  multiply_whole(own_a, own_b, whole.data(), b.columns);
  multiply_in_shares(own_a, own_b, shared.data(), shares, true);
  return std::memcmp(whole.data(), shared.data(), whole.size() * sizeof(float)) == 0;
}

/// The longer side is shared out: the shares read less twice.
template <class T>
Shares planned_shares(const MatrixOf<T>& a, const MatrixOf<T>& b) {
  const std::int64_t work = a.rows * a.columns * b.columns;
  if (work == 0 || work > kLargestShared) return {};
  if (std::max({extent(a), extent(b), a.rows * b.columns}) > kLargestMatrix) return {};
  const int threads = thread_count();
  Shares shares{a.rows >= b.columns, static_cast<int>(std::clamp<std::int64_t>(work / kShare, 1, threads))};
  const std::int64_t side = std::max(a.rows, b.columns);
  if (shares.count < threads)
    while (side % shares.count != 0) --shares.count;
  return side % shares.count == 0 && have_the_same_bits(a, b, shares) ? shares : Shares{};
}

/// m, and zeros behind it up to these extents.
template <class T>
MatrixOf<T> widened(const MatrixOf<T>& m, std::int64_t rows, std::int64_t columns, ScratchScope& scratch) {
  if (m.column_stride != 1) return widened(m.transposed(), columns, rows, scratch).transposed();
  const std::span<T> numbers = scratch.filled(static_cast<std::size_t>(rows * columns), T{});
  for (std::int64_t row = 0; row < m.rows; ++row)
    std::copy_n(m.data + row * m.row_stride, m.columns, numbers.data() + row * columns);
  return MatrixOf<T>::row_major(numbers.data(), rows, columns);
}

/// Calls body(a, b) with factors of this product. Version 2.6 has a wrong kernel for AMX if a row of a has 125 to 127
/// bytes (63 numbers of bfloat16): for some numbers of rows the product is wrong, for others the process ends by an
/// illegal instruction. No other of 6,000 random shapes was wrong; 128 bytes are not.
template <class A, class B, class Body>
void with_right_kernel(const MatrixOf<A>& a, const MatrixOf<B>& b, const Body& body) {
  constexpr std::int64_t kRight = 128, kAlsoRight = 124;
  const std::int64_t bytes = a.columns * static_cast<std::int64_t>(sizeof(A));
  if (isa_level() != IsaLevel::kAmx || bytes <= kAlsoRight || bytes >= kRight) return body(a, b);
  constexpr auto kColumns = kRight / static_cast<std::int64_t>(sizeof(A));
  ScratchScope scratch;
  body(widened(a, a.rows, kColumns, scratch), widened(b, kColumns, b.columns, scratch));
}

template <class T>
void multiply_numbers(const MatrixOf<T>& a, const MatrixOf<T>& b, float* product) {
  const ComputeScope computing;
  if (in_team() || thread_count() == 1) return multiply_whole(a, b, product, b.columns);
  thread_local Kept<Shares> kept;
  const Shares shares = kept.get(key_of(a, b, b.columns), [&] { return planned_shares(a, b); });
  if (shares.count == 0) return multiply_whole(a, b, product, b.columns);
  multiply_in_shares(a, b, product, shares, false);
}

template <class A>
Key key_of_integers(const MatrixOf<A>& a, const MatrixOf<std::int8_t>& b) {
  Key key(Operation::kIntegerMultiply);
  key.append(static_cast<std::int64_t>(kTypeOf<A>));
  key.append_all(
      std::array{a.rows, a.columns, b.columns, a.row_stride, a.column_stride, b.row_stride, b.column_stride});
  return key;
}

template <class A>
void multiply_rows(const MatrixOf<A>& left, const MatrixOf<std::int8_t>& b, std::int32_t* product) {
  ScratchScope scratch;
  const MatrixOf<A> a = with_dense_row(left, scratch);
  const auto compile = [&] {
    const dnnl::memory::desc result({a.rows, b.columns}, dnnl::memory::data_type::s32, dnnl::memory::format_tag::ab);
    return Kernel(describe_primitive<dnnl::matmul>(layout(a), layout(b), result),
                  {{DNNL_ARG_SRC, layout(a)}, {DNNL_ARG_WEIGHTS, layout(b)}, {DNNL_ARG_DST, result, true}});
  };
  const auto describe = [&] {
    return concat("product of the matrices of integers [", a.rows, ",", a.columns, "] and [", b.rows, ",", b.columns,
                  "]");
  };
  run(key_of_integers(a, b), describe, compile, TeamParts::kMayWait, {a.data, b.data, product});
}

/// However the rows are shared out, the sums are the same.
template <class A>
void multiply_integers(const MatrixOf<A>& a, const MatrixOf<std::int8_t>& b, std::int32_t* product) {
  const ComputeScope computing;
  const auto parts =
      static_cast<int>(in_team() ? 1
                                 : std::clamp<std::int64_t>(a.rows * a.columns * b.columns / kShare, 1,
                                                            std::min<std::int64_t>(thread_count(), a.rows)));
  if (parts == 1) return multiply_rows(a, b, product);
  thread_local Kept<bool> compiled;
  bool first_time = false;
  compiled.get(key_of_integers(a, b), [&] { return first_time = true; });
  run_independent_parts(parts, first_time, [&](int part) {
    const std::int64_t begin = a.rows * part / parts, end = a.rows * (part + 1) / parts;
    MatrixOf<A> rows = a;
    rows.data += begin * a.row_stride;
    rows.rows = end - begin;
    multiply_rows(rows, b, product + begin * b.columns);
  });
}

}  // namespace

void multiply(const Matrix& a, const Matrix& b, float* product) { multiply_numbers(a, b, product); }

void multiply(const MatrixOf<Bfloat16>& a, const MatrixOf<Bfloat16>& b, float* product) {
  with_right_kernel(a, b, [product](const auto& left, const auto& right) { multiply_numbers(left, right, product); });
}

void multiply(const MatrixOf<std::uint8_t>& a, const MatrixOf<std::int8_t>& b, std::int32_t* product) {
  with_right_kernel(a, b, [product](const auto& left, const auto& right) { multiply_integers(left, right, product); });
}

void multiply(const MatrixOf<std::int8_t>& a, const MatrixOf<std::int8_t>& b, std::int32_t* product) {
  with_right_kernel(a, b, [product](const auto& left, const auto& right) { multiply_integers(left, right, product); });
}

}  // namespace miniqat::onednn
