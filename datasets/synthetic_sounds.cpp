#include "datasets/synthetic_sounds.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "datasets/sound/drawn_sounds.h"

namespace miniqat::datasets {
namespace {

enum class Source { kWave, kClicks, kNoise, kGlottis };

struct SoundKind {
  const char* name;
  Source source;
  /// Which way a wave's pitch goes.
  double sweep = 0;
  /// Hz, of a vowel.
  double first = 0, second = 0;
};

/// The formants are those of men (Peterson and Barney 1952, table II).
constexpr SoundKind kSounds[] = {{"tone", Source::kWave},
                                 {"rise", Source::kWave, 1},
                                 {"fall", Source::kWave, -1},
                                 {"clicks", Source::kClicks},
                                 {"burst", Source::kNoise},
                                 {"ah", Source::kGlottis, 0, 730, 1090},
                                 {"ee", Source::kGlottis, 0, 270, 2290},
                                 {"oo", Source::kGlottis, 0, 300, 870}};

/// Somewhere in the second: from silence in a tenth of the length to loud, and back.
void draw_sound(std::int32_t label, Random& random, std::span<float> samples) {
  const SoundKind& kind = kSounds[label];
  const bool is_vowel = kind.source == Source::kGlottis;
  const auto length = static_cast<std::size_t>(random.uniform(0.25f, 0.7f) * kDrawnRate);
  const std::span<float> part = samples.subspan(random.below(samples.size() - length), length);
  const double octaves = kind.sweep * random.uniform(0.15f, 1), harmonic = random.uniform(0, 0.5f);
  const double pitch = is_vowel ? random.uniform(90, 250) : 300 * std::pow(2, random.uniform(0, 3) - octaves / 2);
  const double clicks = random.uniform(8, 30) / kDrawnRate, mouth = random.uniform(0.8f, 1.25f);
  const double ring = is_vowel ? mouth * kind.first * random.uniform(0.9f, 1.1f) : random.uniform(700, 3500);
  Resonator first(ring, is_vowel ? 80 : random.uniform(200, 900));
  Resonator second(mouth * kind.second * random.uniform(0.9f, 1.1f), 120);
  double turns = 0, most = 1e-9;
  for (std::size_t i = 0; i < length; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(length), end = 10 * std::min(share, 1 - share);
    turns += pitch * std::pow(2, octaves * share) / kDrawnRate;
    const double pulse = std::floor(turns), phase = 2 * std::numbers::pi * turns;
    turns -= pulse;
    const double sound = kind.source == Source::kWave     ? std::sin(phase) + harmonic * std::sin(2 * phase)
                         : kind.source == Source::kClicks ? first.next(random.uniform() < clicks ? 1 : 0)
                         : kind.source == Source::kNoise  ? first.next(random.uniform(-1, 1))
                                                          : second.next(first.next(pulse));
    part[i] = static_cast<float>(sound * (end >= 1 ? 1 : 0.5 - 0.5 * std::cos(std::numbers::pi * end)));
    most = std::max(most, std::abs(static_cast<double>(part[i])));
  }
  const auto loudness = static_cast<float>(0.04 * std::pow(8, random.uniform()) / most);
  for (float& sample : part) sample *= loudness;
}

}  // namespace

Splits synthetic_sounds(const LoadOptions& options) {
  DrawnSounds sounds{.name = "synthetic-sounds",
                     .classes = {},
                     .train_size = 8000,
                     .test_size = 2000,
                     .snr_db = kSoundsSnrDb,
                     .label = [](Part, std::int64_t i) { return static_cast<std::int32_t>(i % std::ssize(kSounds)); },
                     .draw = draw_sound};
  for (const SoundKind& kind : kSounds) sounds.classes.emplace_back(kind.name);
  return draw_sounds(sounds, options);
}

}  // namespace miniqat::datasets
