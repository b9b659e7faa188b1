#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace miniqat {

/// The extents of a tensor, outermost first. Images are [n, h, w, c], filters [kh, kw, in, out]. A scalar has rank 0.
class Shape {
 public:
  static constexpr int kMaxRank = 8;
  /// No tensor may have more elements: a malformed file must not make us allocate first and fail later.
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

  Shape() = default;
  /// Throws Error when the rank exceeds kMaxRank, an extent is negative, or there are more than kMaxElements elements.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t elements() const { return elements_; }
  /// The extent of an axis; a negative axis counts from the end. Throws Error when there is no such axis.
  std::int64_t operator[](int axis) const;
  /// The last extent, which is the channel everywhere in miniqat; 1 for a scalar.
  std::int64_t channels() const { return rank_ == 0 ? 1 : extents_[rank_ - 1]; }

  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }
  std::vector<std::int64_t> to_vector() const { return {extents().begin(), extents().end()}; }
  /// "[32,28,28,8]"
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
  std::int64_t elements_ = 1;
};

std::ostream& operator<<(std::ostream& stream, const Shape& shape);

/// "[1,0,2]", the place of element i of a row-major tensor, 0 <= i < shape.elements().
std::string place_in(const Shape& shape, std::int64_t i);

}  // namespace miniqat
