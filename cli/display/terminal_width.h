#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>

namespace miniqat::cli {

/// The columns of the terminal that the stream writes to, as wide as it is now: people resize it. Of a terminal that
/// does not tell, $COLUMNS or else 80. None where the stream writes to a file or a pipe.
std::optional<std::size_t> terminal_columns(std::FILE* file);

/// The columns for text that people read, --help say: $COLUMNS, or those of stdout's terminal, or of stderr's where
/// stdout goes through a pager, or else 80. At least 20.
std::size_t text_columns();

}  // namespace miniqat::cli
