#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

namespace miniqat {

// Loops over tensors whose element i belongs to column i % columns: the columns' numbers are repeated until they fill
// some vectors, and the tensor is taken in rows of that length.

/// A whole number of times `columns`, some vectors long.
inline std::int64_t repeated_width(std::int64_t columns) {
  constexpr std::int64_t kLeast = 128;
  return (kLeast + columns - 1) / columns * columns;
}

/// number(c) for each column, repeated to repeated_width(). Lives in `scope`.
template <class T, class Number>
std::span<const T> repeated_row(ScratchScope& scope, std::int64_t columns, const Number& number) {
  const std::span<T> row = scope.take<T>(static_cast<std::size_t>(repeated_width(columns)));
  for (std::int64_t c = 0; c < columns; ++c) row[c] = number(c);
  for (std::size_t i = columns; i < row.size(); ++i) row[i] = row[i - columns];
  return row;
}

/// Calls body(first element, elements) for rows of repeated_width(columns) of n elements, in parallel.
template <class Body>
void for_repeated_rows(std::int64_t n, std::int64_t columns, const Body& body) {
  const std::int64_t width = repeated_width(columns), rows = (n + width - 1) / width;
  parallel_for(rows, std::max<std::int64_t>(1, kPointwiseGrain / width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row * width, std::min(width, n - row * width));
  });
}

}  // namespace miniqat
