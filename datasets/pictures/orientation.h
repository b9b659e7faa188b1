#pragma once

#include <string_view>

#include "datasets/pictures/picture.h"

namespace miniqat::datasets {

/// How a camera was held, as a JPEG, PNG or WebP notes it: the tag Orientation (0x0112) of its Exif part, 1 to 8 (Exif
/// 2.3, JEITA CP-3451C, section 4.6.4). A PNG has it in the chunk eXIf (PNG 3, W3C, section 11.3.4.5), a WebP in the
/// chunk EXIF (RFC 9649, section 2.7.1.5). 1, as it is, for a file without such a note or with a damaged one.
int noted_orientation(std::string_view bytes);

/// Whether height and width change places.
constexpr bool swaps_sides(int orientation) { return orientation >= 5; }

/// Whether upright() makes a copy.
constexpr bool is_turned(int orientation) { return orientation != 1; }

/// A picture as its file stores it, turned and mirrored to what the camera saw.
Picture upright(Picture stored, int orientation);

}  // namespace miniqat::datasets
