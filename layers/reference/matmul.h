#pragma once

#include <cstdint>

namespace miniqat::layers::reference {

/// Looks at a matrix: element (r, c) is data[r * row_stride + c * column_stride]. A transposed matrix is the same
/// memory with the strides exchanged.
template <class T>
struct Matrix {
  T* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride;

  T& operator()(std::int64_t r, std::int64_t c) const { return data[r * row_stride + c * column_stride]; }
  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

/// The specification of MatMul: product = a * b. `In` is T or const T.
template <class In, class T>
void matmul(const Matrix<In>& a, const Matrix<In>& b, const Matrix<T>& product) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < b.columns; ++c) {
      T sum{0};
      for (std::int64_t k = 0; k < a.columns; ++k) sum += a(r, k) * b(k, c);
      product(r, c) = sum;
    }
}

}  // namespace miniqat::layers::reference
