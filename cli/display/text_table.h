#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace miniqat::cli {

using TableLine = std::vector<std::string>;

/// Lines of equally many cells, two spaces apart. The first `left` columns begin at the left, the others end at the
/// right.
std::string aligned(const std::vector<TableLine>& lines, std::size_t left);

}  // namespace miniqat::cli
