#include "integer/stretch.h"

#include <algorithm>

namespace miniqat::integer {

std::vector<StretchedPair::Places> StretchedPair::rows() const {
  std::vector<Places> places = {{}};
  for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
    std::vector<Places> finer;
    for (const Places& place : places)
      for (std::int64_t i = 0; i < extents[axis]; ++i)
        finer.push_back({place.a + i * strides[axis].a, place.b + i * strides[axis].b});
    places = std::move(finer);
  }
  return places;
}

StretchedPair stretched_pair(const Shape& a, const Shape& b) {
  StretchedPair pair;
  std::int64_t inner_a = 1, inner_b = 1;
  for (int axis = a.rank() - 1; axis >= 0; --axis) {
    const std::int64_t extent = std::max(a[axis], b[axis]);
    if (extent == 1) continue;
    const StretchedPair::Places stride = {a[axis] == 1 ? 0 : inner_a, b[axis] == 1 ? 0 : inner_b};
    inner_a *= a[axis];
    inner_b *= b[axis];
    const bool alike = !pair.extents.empty() && (stride.a == 0) == (pair.strides.back().a == 0) &&
                       (stride.b == 0) == (pair.strides.back().b == 0);
    if (alike) {
      pair.extents.back() *= extent;
    } else {
      pair.extents.push_back(extent);
      pair.strides.push_back(stride);
    }
  }
  if (pair.extents.empty()) return {.extents = {1}, .strides = {{1, 1}}};
  std::ranges::reverse(pair.extents);
  std::ranges::reverse(pair.strides);
  return pair;
}

}  // namespace miniqat::integer
