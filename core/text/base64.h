#pragma once

#include <string>
#include <string_view>

namespace miniqat {

/// Bytes as text, three in four characters of A-Z, a-z, 0-9, + and /, filled up with = (RFC 4648, section 4).
std::string base64(std::string_view bytes);

}  // namespace miniqat
