#include "core/tensors/shape.h"

#include <algorithm>

#include "core/text/error.h"

namespace miniqat {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > kMaxRank) fail("a shape of rank ", extents.size(), " exceeds the highest rank ", kMaxRank);
  rank_ = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), extents_.begin());
  for (const std::int64_t extent : extents)
    if (extent < 0) fail("shape ", str(), " has the negative extent ", extent);
  // A 0 counts as 1 here: strides and sizes that are computed from an empty shape must not overflow either.
  for (const std::int64_t extent : extents) {
    if (extent > kMaxElements / elements_) fail("shape ", str(), " has more than ", kMaxElements, " elements");
    elements_ *= std::max<std::int64_t>(extent, 1);
  }
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) elements_ = 0;
}

std::int64_t Shape::operator[](int axis) const {
  if (axis < -rank_ || axis >= rank_) fail("shape ", str(), " has no axis ", axis);
  return extents_[axis < 0 ? axis + rank_ : axis];
}

std::string Shape::str() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ',';
    text += std::to_string(extents_[axis]);
  }
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.extents(), b.extents()); }

std::ostream& operator<<(std::ostream& stream, const Shape& shape) { return stream << shape.str(); }

std::string place_in(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> coordinates(shape.rank());
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    coordinates[axis] = i % shape[axis];
    i /= shape[axis];
  }
  std::string text = "[";
  for (std::size_t k = 0; k < coordinates.size(); ++k) text += concat(k == 0 ? "" : ",", coordinates[k]);
  return text + "]";
}

}  // namespace miniqat
