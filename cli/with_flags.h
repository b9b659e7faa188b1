#pragma once

#include <string>

namespace miniqat::cli {

/// A text of the library for a user who typed flags: settings, which the library names as `per_channel`, become
/// --per-channel. Other words in back-quotes stay.
std::string with_flags(const std::string& text);

}  // namespace miniqat::cli
