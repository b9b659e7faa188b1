#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "datasets/dataset.h"
#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// The samples a second of drawn sounds.
inline constexpr double kDrawnRate = 16000;

/// A data set whose sounds the program draws.
struct DrawnSounds {
  std::string name;
  std::vector<std::string> classes;
  double seconds = 1;
  // Where LoadOptions say nothing else.
  std::int64_t train_size = 0;
  std::int64_t test_size = 0;
  double snr_db = 0;
  SoundOptions front_end = {};
  /// The class of a recording by its number in its part.
  std::int32_t (*label)(Part part, std::int64_t number);
  /// Adds a sound of the class to silence.
  void (*draw)(std::int32_t label, Random& random, std::span<float> samples);
};

/// Draws it, with white noise in every recording at the ratio of their powers, as 16 bits, and turns it into examples.
/// A recording depends on the name, the part, the seed and its number. Throws Error unless both sizes are in
/// [1, 100000].
Splits draw_sounds(const DrawnSounds& sounds, const LoadOptions& options);

/// Two poles that ring at a frequency (Hz) with a bandwidth, as of a formant or of struck metal.
class Resonator {
 public:
  Resonator(double hertz, double bandwidth);
  double next(double input);

 private:
  double a_, b_, last_ = 0, before_ = 0;
};

}  // namespace miniqat::datasets
