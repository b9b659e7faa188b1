#include "importers/onnx/literal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/error.h"
#include "core/files.h"
#include "core/quote.h"
#include "core/suggest.h"

namespace miniqat::importers {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "raw data is little-endian");

float half_to_float(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                          : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                           : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

/// The bytes of a constant's external file, which must lie in the model's folder: a model is data, and may not name any
/// file of the machine.
std::string external_bytes(const pb::Constant& constant, const fs::path& folder, std::int64_t bytes) {
  std::string location;
  std::int64_t offset = 0;
  const auto number = [](const std::string& text) {
    const bool digits = !text.empty() && text.size() < 16 &&
                        std::ranges::all_of(text, [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (!digits) fail("its external data has the offset or length ", quote(text), ", which is no number");
    return static_cast<std::int64_t>(std::stoll(text));
  };
  for (const pb::Property& property : constant.external_data()) {
    if (property.key() == "location") location = property.value();
    if (property.key() == "offset") offset = number(property.value());
    if (property.key() == "length" && number(property.value()) != bytes)
      fail("its external data has ", property.value(), " bytes, its extents need ", bytes);
  }
  const fs::path relative = location;
  const bool climbs = std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() || climbs)
    fail("its external data is in ", quote(location), "; only files in the model's own folder are read");
  const fs::path root = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder);
  const fs::path file = fs::weakly_canonical(root / relative);
  const fs::path inside = file.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..")
    fail("its external data is in ", quote(location), ", a link out of the model's folder");
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(file, failure);
  if (failure) fail("its external data is in ", quote(location), ", which cannot be read");
  if (static_cast<std::uintmax_t>(offset) > size ||
      size - static_cast<std::uintmax_t>(offset) < static_cast<std::uintmax_t>(bytes))
    fail("its external data in ", quote(location), " ends at ", size, ", it needs ", bytes, " bytes from ", offset,
         " on");
  std::string content = read_part(file, static_cast<std::uintmax_t>(offset), static_cast<std::size_t>(bytes));
  if (std::ssize(content) != bytes)
    fail("its external data in ", quote(location), " has ", content.size(), " bytes from ", offset, " on, needs ",
         bytes);
  return content;
}

template <class T>
std::vector<T> from_bytes(const std::string& bytes, std::int64_t elements) {
  if (bytes.size() != static_cast<std::size_t>(elements) * sizeof(T))
    fail("has ", bytes.size(), " bytes, its extents need ", static_cast<std::size_t>(elements) * sizeof(T));
  std::vector<T> values(static_cast<std::size_t>(elements));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// The numbers of a constant, which lie in its raw bytes, in another file, or in `field`, the list of its type.
template <class T, class Field>
std::vector<T> numbers(const pb::Constant& constant, const Field& field, const fs::path& folder,
                       std::int64_t elements) {
  constexpr int kExternal = 1;
  const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(T));
  if (constant.data_location() == kExternal) return from_bytes<T>(external_bytes(constant, folder, bytes), elements);
  if (constant.has_raw_data()) return from_bytes<T>(constant.raw_data(), elements);
  if (field.size() != elements) fail("has ", field.size(), " numbers, its extents need ", elements);
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(elements));
  for (const auto number : field) values.push_back(static_cast<T>(number));
  return values;
}

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  return {from.begin(), from.end()};
}

Literal read_checked(const pb::Constant& constant, const fs::path& folder) {
  Literal literal{.extents = {constant.dims().begin(), constant.dims().end()}, .values = {}};
  const std::int64_t elements = count_elements(literal.extents);
  const auto real = [&]<class T>(T, const auto& field) {
    literal.values = converted<float>(numbers<T>(constant, field, folder, elements));
  };
  const auto whole = [&]<class T>(T, const auto& field) {
    literal.values = converted<std::int64_t>(numbers<T>(constant, field, folder, elements));
  };
  switch (constant.data_type()) {
    case pb::FLOAT:
      literal.values = numbers<float>(constant, constant.float_data(), folder, elements);
      break;
    case pb::DOUBLE:
      real(double{}, constant.double_data());
      break;
    case pb::FLOAT16: {
      std::vector<float> values;
      for (const std::uint16_t half : numbers<std::uint16_t>(constant, constant.int32_data(), folder, elements))
        values.push_back(half_to_float(half));
      literal.values = std::move(values);
      break;
    }
    case pb::INT64:
      literal.values = numbers<std::int64_t>(constant, constant.int64_data(), folder, elements);
      break;
    case pb::INT32:
      whole(std::int32_t{}, constant.int32_data());
      break;
    case pb::INT16:
      whole(std::int16_t{}, constant.int32_data());
      break;
    case pb::INT8:
      whole(std::int8_t{}, constant.int32_data());
      break;
    case pb::UINT8:
    case pb::BOOL:
      whole(std::uint8_t{}, constant.int32_data());
      break;
    default:
      fail("has elements of ONNX's type ", constant.data_type(), ", which miniqat does not read");
  }
  if (literal.is_real())
    for (const float value : literal.reals())
      if (std::isnan(value)) fail("holds a NaN");
  return literal;
}

}  // namespace

std::int64_t Literal::elements() const {
  return std::visit([](const auto& list) { return std::ssize(list); }, values);
}

std::string extents_text(const std::vector<std::int64_t>& extents) {
  std::vector<std::string> parts;
  for (const std::int64_t extent : extents) parts.push_back(extent == kOpenBatch ? "batch" : std::to_string(extent));
  return "[" + joined(parts, ",") + "]";
}

std::int64_t count_elements(const std::vector<std::int64_t>& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) fail("has the extents ", extents_text(extents), ", of which one is negative");
    if (extent > 0 && elements > Shape::kMaxElements / extent)
      fail("has the extents ", extents_text(extents), ", more than ", Shape::kMaxElements, " elements");
    elements *= extent;
  }
  return elements;
}

Literal read_literal(const pb::Constant& constant, const fs::path& folder) {
  try {
    return read_checked(constant, folder);
  } catch (const Error& error) {
    fail("the constant ", quote(constant.name()), " ", error.what());
  }
}

Literal transposed(const Literal& literal, const std::vector<std::int64_t>& axes) {
  Literal result{.extents = {}, .values = literal.values};
  std::vector<std::int64_t> strides(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result.extents.push_back(literal.extents[static_cast<std::size_t>(axes[i])]);
    strides[i] = 1;
    for (std::size_t inner = static_cast<std::size_t>(axes[i]) + 1; inner < axes.size(); ++inner)
      strides[i] *= literal.extents[inner];
  }
  std::visit(
      [&](auto& to) {
        const auto& from = std::get<std::remove_cvref_t<decltype(to)>>(literal.values);
        for (std::int64_t i = 0; i < std::ssize(to); ++i) {
          std::int64_t rest = i, place = 0;
          for (std::size_t axis = axes.size(); axis-- > 0; rest /= result.extents[axis])
            place += rest % result.extents[axis] * strides[axis];
          to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(place)];
        }
      },
      result.values);
  return result;
}

}  // namespace miniqat::importers
