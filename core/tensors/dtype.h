#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace miniqat {

enum class DType { kFloat32, kFloat64, kInt64, kInt32, kInt8, kUInt8 };

/// Bytes of one element.
std::size_t byte_size(DType dtype);

/// The name in graph JSON: "float32", "int32", ...
std::string_view name_of(DType dtype);

/// The inverse of name_of; throws Error for a name that is none.
DType dtype_from_name(std::string_view name);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Throws Error unless the value, called `name` in the message, is finite as a float32 too.
void require_float32(double value, std::string_view name);

}  // namespace miniqat
