#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace miniqat::datasets {

/// The number of examples of each class.
std::vector<std::int64_t> class_counts(const Dataset& dataset);

/// How many pictures of each class there are, in one line: "60 of each of 10 classes", "452 to 562 of each of 10
/// classes" or, of uneven classes that fit on the line, "4 of cat, 12 of dog". A class without a picture counts as 0.
std::string class_counts_text(const Dataset& dataset);

/// "note: the first 100 pictures have 1 of 10 classes: ..." where the first examples of a data set, `head`, lack
/// classes that it has, as they do where it is in the order of its classes; "" otherwise.
std::string note_on_first(const Dataset& head, const Dataset& all);

/// "note: example 30 is not the last of its recording: ..." where first_recordings() gave more than were asked for; ""
/// otherwise.
std::string note_on_whole_recordings(const Dataset& head, std::int64_t asked);

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
