#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// Which of the 256 values of a byte pixels have.
struct Levels {
  explicit Levels(std::span<const std::uint8_t> pixels);

  int count = 0;
  /// 0 without pixels.
  int least = 0, greatest = 0;
};

/// "note: the training pictures use 6 of 256 levels, from 0 to 5: ..." where the pictures are nearly of one brightness,
/// as pictures are that were divided by 255 once too often; "" otherwise. `title`: "training".
std::string note_on_levels(const Dataset& pictures, const std::string& title);

}  // namespace miniqat::datasets
