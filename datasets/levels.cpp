#include "datasets/levels.h"

#include "core/text/error.h"

namespace miniqat::datasets {

Levels::Levels(std::span<const std::uint8_t> pixels) {
  std::array<bool, 256> seen = {};
  for (const std::uint8_t pixel : pixels) seen[pixel] = true;
  for (int level = 255; level >= 0; --level)
    if (seen[static_cast<std::size_t>(level)]) {
      if (count == 0) greatest = level;
      least = level;
      ++count;
    }
}

std::string note_on_levels(const Dataset& pictures, const std::string& title) {
  constexpr int kNarrow = 32;
  const Levels levels(pictures.images.values<std::uint8_t>());
  if (levels.greatest - levels.least >= kNarrow) return "";
  return concat("note: ", pictures.name, ": the ", title, " pictures use ", levels.count, " of 256 levels, from ",
                levels.least, " to ", levels.greatest, ": were they divided once too often?");
}

}  // namespace miniqat::datasets
