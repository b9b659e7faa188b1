#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace miniqat {

// An HTML page that is one file, made of several.

/// `page` with part("name") in the place of each @name@. Marks in a part stay as they are.
std::string fill_page(std::string_view page, const std::function<std::string(std::string_view)>& part);

/// A text between the tags of HTML.
std::string html_text(std::string_view text);

/// JSON for a script element, in which no text may look like the element's end. Throws nlohmann's type_error for a text
/// that is not UTF-8.
std::string script_json(const nlohmann::ordered_json& json);

/// Bytes as text, three in four characters of A-Z, a-z, 0-9, + and /, filled up with = (RFC 4648, section 4).
std::string base64(std::string_view bytes);

}  // namespace miniqat
