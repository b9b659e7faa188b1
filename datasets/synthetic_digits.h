#pragma once

#include "datasets/dataset.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// Handwriting-like digits drawn by the program: images [n, 28, 28, 1], bright ink on black, scale 1/255, ten classes
/// in equal numbers (but for a remainder), shuffled. Image i of a split is a pure function of seed, split and i,
/// whatever the number of threads. Written as MNIST is, roughly: the digit in a 20x20 box about the centre, with
/// varying style, slant, size, pen and neatness; a few in a hundred are hard to read.
/// Throws Error unless both sizes are in [1, 1000000].
Splits synthetic_digits(const LoadOptions& options = {});

}  // namespace miniqat::datasets
