#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "tests/datasets/sound/wav.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

constexpr std::uint32_t kRecordingRate = 8000;
using Recording = std::vector<std::int16_t>;

/// Three tenths of a second of a low or a high tone in noise.
inline Recording noisy_tone(int which, bool high) {
  Recording samples;
  std::uint32_t bits = 7919u * static_cast<std::uint32_t>(which + 1);
  for (int i = 0; i < 2400; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const double noise = static_cast<double>(bits >> 16) / 32768 - 1,
                 hertz = high ? 900 + 20 * which : 300 + 10 * which;
    samples.push_back(
        static_cast<std::int16_t>(4000 * std::sin(i * hertz * 6.283 / kRecordingRate + which) + 9000 * noise));
  }
  return samples;
}

/// A folder of such tones: 30 of each class, "high" and "low", to train and 10 to test. Returns the test part in its
/// order.
inline std::vector<Recording> write_tones(const TempDir& place, const std::string& folder) {
  std::vector<Recording> tests;
  for (const bool high : {true, false})
    for (int which = 0; which < 40; ++which) {
      const bool is_test = which % 4 == 0;
      const Recording samples = noisy_tone(which, high);
      place.write(concat(folder, is_test ? "/test" : "/train", high ? "/high/" : "/low/", 100 + which, ".wav"),
                  wav(samples, kRecordingRate));
      if (is_test) tests.push_back(samples);
    }
  return tests;
}

/// A tenth of a second of a machine, with clicks of that height where it is broken.
inline Recording machine_hum(int number, int click) {
  Recording samples;
  for (int t = 0; t < 800; ++t) {
    const int noise = (t * 7919 + number * 104729) % 601 - 300;
    samples.push_back(
        static_cast<std::int16_t>(3000 * std::sin((0.2 + 0.001 * number) * t) + noise + (t % 100 == 0 ? click : 0)));
  }
  return samples;
}

/// A folder of such recordings as DCASE has them: 12 normal ones to train, 4 and 4 broken ones to test.
inline void write_machine(const TempDir& place, const std::string& folder) {
  for (int i = 0; i < 12; ++i)
    place.write(concat(folder, "/train/normal_id_0_", i, ".wav"), wav(machine_hum(i, 0), kRecordingRate));
  for (int i = 0; i < 4; ++i) {
    place.write(concat(folder, "/test/normal_id_0_", i, ".wav"), wav(machine_hum(20 + i, 0), kRecordingRate));
    place.write(concat(folder, "/test/anomaly_id_0_", i, ".wav"), wav(machine_hum(30 + i, 6000), kRecordingRate));
  }
}

}  // namespace miniqat::testing
