#pragma once

#include "datasets/dataset.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// The hum of a machine, recordings of two seconds drawn by the program: harmonics of a shaft and the noise of its fan.
/// All 300 to train are normal, class 0, and so are half of the 300 to test; the others have a fault: a worn bearing
/// (ringing blows at its own pace), a bent shaft (half harmonics, beating), or a whine. Each is a pure function of
/// seed, part and number. Throws Error unless both sizes are in [1, 100000].
Splits synthetic_hums(const LoadOptions& options = {});

/// The power of a hum over that of the white noise, in decibels, where nobody says another.
inline constexpr double kHumsSnrDb = 15;

}  // namespace miniqat::datasets
