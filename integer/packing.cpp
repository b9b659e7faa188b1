#include "integer/packing.h"

#include "core/text/error.h"

namespace miniqat::integer {

std::vector<std::uint8_t> pack(std::span<const std::uint8_t> values, int bits) {
  std::vector<std::uint8_t> bytes(packed_size(static_cast<std::int64_t>(values.size()), bits));
  std::size_t bit = 0;
  for (const std::uint8_t value : values) {
    const unsigned shifted = static_cast<unsigned>(value) << (bit % 8);
    bytes[bit / 8] |= static_cast<std::uint8_t>(shifted);
    if (bit % 8 + bits > 8) bytes[bit / 8 + 1] |= static_cast<std::uint8_t>(shifted >> 8);
    bit += bits;
  }
  return bytes;
}

std::vector<std::uint8_t> unpack(std::span<const std::uint8_t> bytes, std::int64_t count, int bits) {
  if (static_cast<std::int64_t>(bytes.size()) != packed_size(count, bits))
    fail(count, " integers of ", bits, " bits take ", packed_size(count, bits), " bytes, not ", bytes.size());
  std::vector<std::uint8_t> values(count);
  const unsigned mask = (1u << bits) - 1;
  std::size_t bit = 0;
  for (std::uint8_t& value : values) {
    unsigned window = bytes[bit / 8];
    if (bit % 8 + bits > 8) window |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
    value = static_cast<std::uint8_t>((window >> (bit % 8)) & mask);
    bit += bits;
  }
  return values;
}

std::vector<std::uint8_t> transpose(std::span<const std::uint8_t> matrix, std::int64_t rows) {
  const std::int64_t columns = static_cast<std::int64_t>(matrix.size()) / rows;
  std::vector<std::uint8_t> transposed(matrix.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      transposed[column * rows + row] = matrix[row * columns + column];
  return transposed;
}

}  // namespace miniqat::integer
