#pragma once

#include <cstdint>

#include "core/tensors/bfloat16.h"

/// Products of matrices; core/kernels/onednn.h says what all functions here share.
namespace miniqat::onednn {

/// Looks at a matrix: element (r, c) is data[r * row_stride + c * column_stride]. One stride is 1.
template <class T>
struct MatrixOf {
  const T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;

  static MatrixOf row_major(const T* data, std::int64_t rows, std::int64_t columns) {
    return {data, rows, columns, columns, 1};
  }
  MatrixOf transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};
using Matrix = MatrixOf<float>;

/// product = a * b, row-major [a.rows, b.columns].
void multiply(const Matrix& a, const Matrix& b, float* product);
/// The same from factors of bfloat16, where has_bfloat16(); sums are float32.
void multiply(const MatrixOf<Bfloat16>& a, const MatrixOf<Bfloat16>& b, float* product);

// Integers, and their exact sums in 32 bits, which no sum may leave (core/kernels/onednn_bytes.h).

/// a 0..255, b within +-exact_byte().
void multiply(const MatrixOf<std::uint8_t>& a, const MatrixOf<std::int8_t>& b, std::int32_t* product);
/// Where has_signed_bytes(): both factors -128..127.
void multiply(const MatrixOf<std::int8_t>& a, const MatrixOf<std::int8_t>& b, std::int32_t* product);

}  // namespace miniqat::onednn
