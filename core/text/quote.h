#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace miniqat {

// Texts from files and from the command line go through here before an error shows them: they may hold anything.

/// One line of UTF-8 without effects on a terminal. Control characters (line breaks, those of Unicode and marks that
/// turn the direction of writing) and bytes that are not UTF-8 become escapes as in C: \n, \x1b, \u202e.
std::string printable(std::string_view text);

/// The same in double quotes, with quotes and backslashes escaped. Of a text longer than 200 bytes the beginning and
/// the end, and behind the quotes its length: `"aaa...zzz" (5000 bytes)`. (If it were called `quoted`, a std::string
/// would go to std::quoted instead.)
std::string quote(std::string_view text);

/// The text; if it has more than 200 bytes, its beginning and its end with "..." between them.
std::string shortened(std::string_view text);

/// One word of a command that is printed to be pasted into a shell: `runs/a` as it is, anything that a shell would take
/// apart or run in quotes, `'my runs/a$(touch x)'`. sh, bash, zsh and fish read the same word. A text with bytes that
/// printable() would escape (control characters, no UTF-8) has these as octal numbers, `$'a\012b'`, which bash and zsh
/// read; so printable() changes nothing of the result.
std::string shell_quoted(std::string_view word);

/// A path in quotes. One that begins with `-` is told from a flag: `./-a`.
std::string shell_path(const std::filesystem::path& path);
/// A path as a word that is not quoted yet, with `./` before a `-`.
std::string path_word(const std::filesystem::path& path);

}  // namespace miniqat
