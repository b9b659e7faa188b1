#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace miniqat {

/// The limit of parse_json(): no file of ours nests deeper, and a parser's stack is finite.
inline constexpr std::size_t kDeepestJson = 64;

/// Parses JSON, in time and memory that grow with the bytes of the text, whatever their number of keys; the keys keep
/// their order. Throws Error with line and column for malformed text, for a key that occurs twice in an object, and for
/// nesting deeper than kDeepestJson levels.
nlohmann::ordered_json parse_json(std::string_view text);

/// A value as an error shows it: on one line, strings quote(), long ones shortened().
std::string shown(const nlohmann::ordered_json& json);

/// JSON on one line with a space after ':' and ','.
std::string dump_on_one_line(const nlohmann::ordered_json& json);

}  // namespace miniqat
