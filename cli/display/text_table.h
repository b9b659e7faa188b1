#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::cli {

using TableLine = std::vector<std::string>;

/// Lines of equally many cells, two spaces apart. The first `left` columns begin at the left, the others end at the
/// right. Widths are columns of a terminal.
std::string aligned(const std::vector<TableLine>& lines, std::size_t left);

/// A name from a file: printable, of at most 40 columns, a longer one without its middle.
std::string name_cell(std::string_view name);

}  // namespace miniqat::cli
