#pragma once

#include <span>
#include <vector>

namespace miniqat::datasets {

/// A point that a pen passes through, in a unit box, x to the right and y downwards. The line is smooth there unless
/// it is a corner.
struct PenPoint {
  float x = 0;
  float y = 0;
  bool corner = false;
};

/// From pen down to pen up.
using PenStroke = std::vector<PenPoint>;

/// One way of writing a digit.
using Glyph = std::vector<PenStroke>;

/// The ways in which people write a digit, 0 to 9.
std::span<const Glyph> glyphs_of(int digit);

}  // namespace miniqat::datasets
