#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace miniqat {

/// One word of a command that is printed to be pasted into a shell: `runs/a` as it is, anything that a shell would take
/// apart or run in quotes, `'my runs/a$(touch x)'`. sh, bash, zsh and fish read the same word. A text with bytes that
/// printable() would escape (control characters, no UTF-8) has these as octal numbers, `$'a\012b'`, which bash and zsh
/// read; so printable() changes nothing of the result.
std::string shell_quoted(std::string_view word);

/// A path as a word that shell_quoted() has quoted. One that begins with `-` is told from a flag: `./-a`.
std::string shell_path(const std::filesystem::path& path);
/// A path as a word that is not quoted yet, with `./` before a `-`.
std::string path_word(const std::filesystem::path& path);

}  // namespace miniqat
