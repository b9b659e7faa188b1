#include "core/text/shell_quote.h"

#include <array>
#include <cstdio>

#include "core/text/classic.h"
#include "core/text/quote.h"

namespace miniqat {
namespace {

/// Means nothing to any shell, wherever it stands; but zsh takes =ls for the path of ls.
bool is_plain_word(std::string_view word) {
  return !word.empty() && word.front() != '=' &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") ==
             std::string_view::npos;
}

/// Between single quotes nothing has a meaning but the quote, and in fish the backslash: both stand outside of them.
std::string in_single_quotes(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : c == '\\' ? "'\\\\'" : std::string(1, c);
  return text + "'";
}

/// With numbers for all but letters, digits and the like, so that nothing is left to the meaning of a mark.
std::string in_octal_numbers(std::string_view word) {
  std::string text = "$'";
  for (const char c : word) {
    if (is_plain_word({&c, 1})) {
      text += c;
      continue;
    }
    std::array<char, 8> number{};
    classic_snprintf(number.data(), number.size(), "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += number.data();
  }
  return text + "'";
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (is_plain_word(word)) return std::string(word);
  return printable(word) == word ? in_single_quotes(word) : in_octal_numbers(word);
}

std::string shell_path(const std::filesystem::path& path) { return shell_quoted(path_word(path)); }

std::string path_word(const std::filesystem::path& path) {
  return path.native().starts_with('-') ? "./" + path.native() : path.native();
}

}  // namespace miniqat
