#pragma once

#include <filesystem>

#include "core/tensors/tensor.h"

namespace miniqat::datasets {

/// Pictures in text, one a line: a label and pixels, with commas between them.
struct CsvPictures {
  /// [n, h, w, c] uint8
  Tensor images;
  /// [n] int32
  Tensor labels;
};

/// A first line that does not begin with a number names the columns: the one called label, class or target, in any
/// case, has the labels. Without such a name it is the first. Numbers are integers in [0, 255]; decimals that are whole
/// ("12.0") count. `size` is [h, w] where it is known, {0, 0} for squares; three times as many numbers are RGB. The
/// file may be gzipped. Throws Error with path and line: no number, one out of range, rows of different lengths, a
/// length that is no square.
///
/// With `labels_optional` a first row of as many numbers as a picture of `size` has, in a table without such a name,
/// has no label, and one that is_missing() is -1. Without any CsvPictures::labels is undefined.
CsvPictures read_csv_pictures(const std::filesystem::path& path, const Shape& size, bool labels_optional = false);

}  // namespace miniqat::datasets
