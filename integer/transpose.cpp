#include "integer/transpose.h"

namespace miniqat::integer {

std::vector<std::uint8_t> transpose(std::span<const std::uint8_t> matrix, std::int64_t rows) {
  const std::int64_t columns = static_cast<std::int64_t>(matrix.size()) / rows;
  std::vector<std::uint8_t> transposed(matrix.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      transposed[column * rows + row] = matrix[row * columns + column];
  return transposed;
}

}  // namespace miniqat::integer
