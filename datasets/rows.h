#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensors/tensor.h"

namespace miniqat::datasets {

// Rows of a tensor, its slices along the first axis, as bytes of whatever type. An undefined tensor has none.

/// `rows` rows like those of `all`, zeros; undefined where that is.
inline Tensor room_for(const Tensor& all, std::int64_t rows) {
  if (!all.defined()) return {};
  std::vector<std::int64_t> extents(all.shape().extents().begin(), all.shape().extents().end());
  extents[0] = rows;
  return Tensor(Shape(extents), all.dtype());
}

inline std::span<const std::byte> row_of(const Tensor& tensor, std::int64_t number) {
  const std::size_t bytes = tensor.bytes() / static_cast<std::size_t>(tensor.shape()[0]);
  return {static_cast<const std::byte*>(tensor.raw()) + bytes * static_cast<std::size_t>(number), bytes};
}

/// Copies row `from_row` of `from` into row `to_row` of `to`.
inline void copy_row(const Tensor& from, std::int64_t from_row, Tensor& to, std::int64_t to_row) {
  if (!from.defined()) return;
  const std::span<const std::byte> row = row_of(from, from_row);
  std::ranges::copy(row, static_cast<std::byte*>(to.raw()) + row.size() * static_cast<std::size_t>(to_row));
}

/// Copies of the rows with these numbers, in the order given.
inline Tensor rows_at(const Tensor& tensor, std::span<const std::int64_t> numbers) {
  Tensor chosen = room_for(tensor, std::ssize(numbers));
  for (std::size_t k = 0; k < numbers.size(); ++k) copy_row(tensor, numbers[k], chosen, static_cast<std::int64_t>(k));
  return chosen;
}

}  // namespace miniqat::datasets
