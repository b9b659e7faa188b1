#pragma once

#include <cstdint>

namespace miniqat::layers::reference {

/// One input of a concatenation. Seen from the joined axis the output is [outer, y_extent, inner]; the part covers
/// [offset, offset + x_extent) of the middle axis.
struct ConcatPart {
  std::int64_t outer;
  std::int64_t x_extent;
  std::int64_t y_extent;
  std::int64_t offset;
  std::int64_t inner;
};

/// Calls body(i, j) for all elements i of the part and their places j in the output.
template <class Body>
void for_each_of_part(const ConcatPart& part, const Body& body) {
  for (std::int64_t o = 0; o < part.outer; ++o)
    for (std::int64_t e = 0; e < part.x_extent; ++e)
      for (std::int64_t k = 0; k < part.inner; ++k)
        body((o * part.x_extent + e) * part.inner + k, (o * part.y_extent + part.offset + e) * part.inner + k);
}

template <class T>
void concat(const ConcatPart& part, const T* x, T* y) {
  for_each_of_part(part, [=](std::int64_t i, std::int64_t j) { y[j] = x[i]; });
}

template <class T>
void concat_d_x(const ConcatPart& part, const T* d_y, T* d_x) {
  for_each_of_part(part, [=](std::int64_t i, std::int64_t j) { d_x[i] = d_y[j]; });
}

}  // namespace miniqat::layers::reference
