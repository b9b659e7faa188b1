#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace miniqat {

/// Parses JSON; throws Error with line and column of what is malformed, for a key that stands twice in an object,
/// and for nesting deeper than 64 levels (nothing of ours nests deeper, and a parser's stack is finite).
nlohmann::ordered_json parse_json(std::string_view text);

/// JSON on one line with a space after ':' and ','.
std::string dump_on_one_line(const nlohmann::ordered_json& json);

}  // namespace miniqat
