#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::cli {

/// The text in lines of at most `width` columns, broken at blanks. Line breaks of the text stay, and the blanks behind
/// them indent what the line becomes. A word that is wider than a line is broken behind a comma, and stands out where
/// it has none.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A line of --help of at most `width` columns: a name and, in a column of its own or on the next line, what it means.
/// `width` must be at least 20.
std::string help_line(const std::string& name, const std::string& text, std::size_t width);

}  // namespace miniqat::cli
