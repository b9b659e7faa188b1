#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace miniqat::datasets {

/// One channel of a recording: samples of -1 to 1 at `rate` a second.
struct Sound {
  std::vector<float> samples;
  std::int64_t rate = 0;
};

/// Reads a file (libsndfile); several channels become their mean. Throws Error that names the file: one that is
/// damaged, cut short, empty, or longer than an hour.
Sound read_sound(const std::filesystem::path& path);

/// The sound with another rate (soxr, its high quality); as it is where it has that rate.
Sound resampled(const Sound& sound, std::int64_t rate);

/// `count` samples: the middle of a longer sound, zeros on both sides of a shorter one.
std::vector<float> fitted(const Sound& sound, std::int64_t count);

}  // namespace miniqat::datasets
