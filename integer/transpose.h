#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace miniqat::integer {

/// A row-major matrix [rows, columns] as [columns, rows]. `rows` must divide the number of values.
std::vector<std::uint8_t> transpose(std::span<const std::uint8_t> matrix, std::int64_t rows);

}  // namespace miniqat::integer
