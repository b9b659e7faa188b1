#pragma once

#include <string>

namespace miniqat::cli {

/// CLI11's error about a wrong command line, in our words: "Could not convert: --steps = x" becomes `--steps must be a
/// number, got "x"`. Any other text stays as it is.
std::string in_plain_words(const std::string& text);

}  // namespace miniqat::cli
