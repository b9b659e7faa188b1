#pragma once

#include "datasets/dataset.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// Sounds of a second, drawn by the program: tone, rising and falling chirps, clicks, a burst of noise, and three
/// vowels of two formants, in white noise; eight classes in equal numbers, 8,000 to train and 2,000 to test. Each is a
/// pure function of seed, part and number. Throws Error unless both sizes are in [1, 100000].
Splits synthetic_sounds(const LoadOptions& options = {});

/// The power of the sounds over that of the noise, in decibels, where nobody says another.
inline constexpr double kSoundsSnrDb = -5;

}  // namespace miniqat::datasets
