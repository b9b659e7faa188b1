#include "importers/onnx/literal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

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

std::string location_of(const pb::Constant& constant) {
  std::string location;
  for (const pb::Property& property : constant.external_data())
    if (property.key() == "location") location = property.value();
  return location;
}

/// The bytes of a constant's external file.
std::string external_bytes(const pb::Constant& constant, const fs::path& folder, std::int64_t bytes) {
  std::int64_t offset = 0;
  const auto number = [](const std::string& text) {
    const bool digits = !text.empty() && text.size() < 16 &&
                        std::ranges::all_of(text, [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (!digits) fail("has external data with the offset or length ", quote(text), ", which is no number");
    return static_cast<std::int64_t>(std::stoll(text));
  };
  for (const pb::Property& property : constant.external_data()) {
    if (property.key() == "offset") offset = number(property.value());
    if (property.key() == "length" && number(property.value()) != bytes)
      fail("has ", quote(property.value()), " bytes of external data, its extents need ", bytes);
  }
  const std::string location = location_of(constant);
  const fs::path file = external_file(constant, folder);
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(file, failure);
  if (failure) fail("keeps its data in ", quote(location), ", which cannot be read");
  if (static_cast<std::uintmax_t>(offset) > size ||
      size - static_cast<std::uintmax_t>(offset) < static_cast<std::uintmax_t>(bytes))
    fail("keeps its data in ", quote(location), ", which ends at ", size, "; it needs ", counted(bytes, "byte"),
         " from ", offset, " on");
  std::string content = read_part(file, static_cast<std::uintmax_t>(offset), static_cast<std::size_t>(bytes));
  if (std::ssize(content) != bytes)
    fail("keeps its data in ", quote(location), ", which has ", counted(content.size(), "byte"), " from ", offset,
         " on; it needs ", bytes);
  return content;
}

template <class T>
std::vector<T> from_bytes(const std::string& bytes, std::int64_t elements) {
  if (bytes.size() != static_cast<std::size_t>(elements) * sizeof(T))
    fail("has ", counted(bytes.size(), "byte"), ", its extents need ", static_cast<std::size_t>(elements) * sizeof(T));
  std::vector<T> values(static_cast<std::size_t>(elements));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// The numbers of a constant, which lie in its raw bytes, in another file, or in `field`, the list of its type.
template <class T, class Field>
std::vector<T> numbers(const pb::Constant& constant, const Field& field, const fs::path& folder,
                       std::int64_t elements) {
  const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(T));
  if (is_external(constant)) return from_bytes<T>(external_bytes(constant, folder, bytes), elements);
  if (constant.has_raw_data()) return from_bytes<T>(constant.raw_data(), elements);
  if (field.size() != elements) fail("has ", counted(field.size(), "number"), ", its extents need ", elements);
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
  if (literal.extents.size() > static_cast<std::size_t>(Shape::kMaxRank))
    fail("has ", literal.extents.size(), " axes, more than ", Shape::kMaxRank);
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
  if (const std::string flaw = flaw_of(literal); !flaw.empty()) fail(flaw);
  return literal;
}

}  // namespace

std::int64_t Literal::elements() const {
  return std::visit([](const auto& list) { return std::ssize(list); }, values.lists());
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

std::string flaw_of(const Literal& literal) {
  if (!literal.is_real())
    return std::ranges::find(literal.integers(), kOpenBatch) == literal.integers().end()
               ? ""
               : "holds -2^63, which is no size";
  for (const float value : literal.reals())
    if (std::isnan(value) || (std::isinf(value) && literal.elements() > 1))
      return concat("holds a number that is ", std::isnan(value) ? "NaN" : "infinite");
  return "";
}

bool is_external(const pb::Constant& constant) {
  constexpr int kExternal = 1;
  return constant.data_location() == kExternal;
}

fs::path external_file(const pb::Constant& constant, const fs::path& folder) {
  const std::string location = location_of(constant);
  const fs::path relative = location;
  const bool climbs = std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() || climbs)
    fail("keeps its data in ", quote(location), "; only files in the model's own folder are read");
  std::error_code failure;
  const fs::path root = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, failure);
  const fs::path file = failure ? fs::path() : fs::weakly_canonical(root / relative, failure);
  if (failure) fail("keeps its data in ", quote(shortened(location)), ": ", failure.message());
  const fs::path inside = file.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..")
    fail("keeps its data in ", quote(location), ", a link out of the model's folder");
  return file;
}

Literal read_literal(const pb::Constant& constant, const fs::path& folder) {
  try {
    return read_checked(constant, folder);
  } catch (const Error& error) {
    fail("the constant ", quote(constant.name()), " ", error.what());
  }
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  return strides;
}

Literal picked(const Literal& literal, std::vector<std::int64_t> extents, std::int64_t start,
               const std::vector<std::int64_t>& strides) {
  const std::int64_t elements = count_elements(extents);
  return std::visit(
      [&](const auto& from) -> Literal {
        std::remove_cvref_t<decltype(from)> to(static_cast<std::size_t>(elements));
        for (std::int64_t i = 0; i < elements; ++i) {
          std::int64_t rest = i, place = start;
          for (std::size_t axis = extents.size(); axis-- > 0; rest /= extents[axis])
            place += rest % extents[axis] * strides[axis];
          to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(place)];
        }
        return {.extents = std::move(extents), .values = std::move(to)};
      },
      literal.values.lists());
}

Literal transposed(const Literal& literal, const std::vector<std::int64_t>& axes) {
  const bool is_empty = literal.elements() == 0;
  const std::vector<std::int64_t> whole =
      is_empty ? std::vector<std::int64_t>(axes.size(), 0) : strides_of(literal.extents);
  std::vector<std::int64_t> extents, strides;
  for (const std::int64_t axis : axes) {
    extents.push_back(literal.extents[static_cast<std::size_t>(axis)]);
    strides.push_back(whole[static_cast<std::size_t>(axis)]);
  }
  return is_empty ? Literal{.extents = std::move(extents), .values = literal.values}
                  : picked(literal, std::move(extents), 0, strides);
}

}  // namespace miniqat::importers
