#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace miniqat::integer {

// How weights lie in files.

/// The bytes that `count` integers of `bits` bits take, without gaps: ceil(count * bits / 8).
constexpr std::int64_t packed_size(std::int64_t count, int bits) { return (count * bits + 7) / 8; }

/// Integers of 1..8 bits as a stream. The first has the lowest bits of the first byte. One that crosses a byte's end
/// goes on in the lowest bits of the next. The rest of the last byte is 0. Two of 4 bits make a byte, low half first.
/// Values must fit the bits.
std::vector<std::uint8_t> pack(std::span<const std::uint8_t> values, int bits);

/// `count` integers from such a stream. Throws Error when `bytes` is not of packed_size(count, bits).
std::vector<std::uint8_t> unpack(std::span<const std::uint8_t> bytes, std::int64_t count, int bits);

/// A row-major matrix [rows, columns] as [columns, rows]. `rows` must divide the number of values.
std::vector<std::uint8_t> transpose(std::span<const std::uint8_t> matrix, std::int64_t rows);

}  // namespace miniqat::integer
