#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/sound/features.h"

namespace miniqat::datasets {

/// How the sounds of a training set are varied. The default leaves them as they are.
struct SoundVariation {
  /// Earlier or later by up to so many milliseconds, with silence, or what a longer recording has there, at the end.
  double shift_ms = 0;
  /// Louder or softer by up to so many decibels.
  double gain_db = 0;
  /// A folder of sounds, pieces of which are added; "" for none.
  std::string noise = {};
  /// The ratio of a sound's power to that of the noise, in decibels: from here to 20 more.
  double noise_db = 10;

  bool none() const { return shift_ms == 0 && gain_db == 0 && noise.empty(); }
};

/// The samples of recordings, 16 bits each, from which features are made anew.
class VariedSounds {
 public:
  using Recording = std::vector<std::int16_t>;

  /// Reads the noise. Throws Error for a folder without sounds, and for one that cannot be read.
  VariedSounds(const SoundOptions& options, const SoundVariation& variation, std::vector<Recording> recordings);

  /// Writes the example that begins at a step of a recording, varied by what `key` draws. Callable by several threads.
  void write(std::int64_t recording, std::int64_t step, std::uint64_t key, std::span<float> example) const;

 private:
  const FrontEnd front_end_;
  const SoundVariation variation_;
  const std::vector<Recording> recordings_;
  std::vector<std::vector<float>> noises_;
};

/// The 16 bits of a sample of -1 to 1, as in a WAV file.
std::int16_t sample_bits(float sample);

}  // namespace miniqat::datasets
