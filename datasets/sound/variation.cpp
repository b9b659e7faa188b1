#include "datasets/sound/variation.h"

#include <algorithm>
#include <cmath>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "datasets/sound/sound.h"
#include "datasets/sound/sound_files.h"

namespace miniqat::datasets {
namespace {

constexpr float kFullScale = 32768;
constexpr float kNoiseSpan = 20;

double power_of(std::span<const float> samples) {
  double sum = 0;
  for (const float sample : samples) sum += static_cast<double>(sample) * sample;
  return sum / static_cast<double>(samples.size());
}

/// Adds a piece of the noise, from a drawn place on and round its end, at a ratio of the powers. Silence stays silent.
void add_noise(std::span<float> samples, std::span<const float> noise, double ratio_db, Random& random) {
  std::vector<float> piece(samples.size());
  std::size_t at = random.below(noise.size());
  for (float& sample : piece) {
    sample = noise[at];
    at = at + 1 == noise.size() ? 0 : at + 1;
  }
  const double noise_power = power_of(piece);
  if (noise_power == 0) return;
  const auto factor = static_cast<float>(std::sqrt(power_of(samples) / (noise_power * std::pow(10, ratio_db / 10))));
  for (std::size_t t = 0; t < samples.size(); ++t) samples[t] += factor * piece[t];
}

}  // namespace

std::int16_t sample_bits(float sample) {
  return static_cast<std::int16_t>(std::clamp(std::lround(sample * kFullScale), -32768L, 32767L));
}

VariedSounds::VariedSounds(const SoundOptions& options, const SoundVariation& variation,
                           std::vector<Recording> recordings)
    : front_end_(options), variation_(variation), recordings_(std::move(recordings)) {
  if (variation.noise.empty()) return;
  const std::filesystem::path folder = variation.noise;
  if (!std::filesystem::is_directory(folder)) fail("there is no folder ", folder, " of noise");
  for (const std::string& file : sounds_in(folder, folder))
    noises_.push_back(resampled(read_sound(folder / file), options.rate).samples);
  // The test part may have pieces of what follows.
  if (options.silence > 0)
    for (std::vector<float>& noise : noises_) noise.resize(noise.size() * kTrainedTenths / 10);
  if (noises_.empty()) fail("there are no sounds in ", folder, ", the folder of noise");
  if (std::ranges::any_of(noises_, &std::vector<float>::empty))
    fail("a sound in ", folder, ", the folder of noise, is too short: no sample is left of it");
}

void VariedSounds::write(std::int64_t recording, std::int64_t step, std::uint64_t key, std::span<float> example) const {
  const SoundOptions& how = front_end_.options();
  const Recording& all = recordings_.at(static_cast<std::size_t>(recording));
  Random random(key);
  const auto drawn = [&](double most) { return most * (2.0 * random.uniform() - 1); };
  const std::int64_t shift = std::llround(drawn(variation_.shift_ms) * static_cast<double>(how.rate) / 1000);
  const double gain_db = drawn(variation_.gain_db);
  std::vector<float> samples(static_cast<std::size_t>(how.example_samples()));
  const std::int64_t first = step * (how.frames == 0 ? 0 : how.stride()) - shift;
  for (std::int64_t t = std::max<std::int64_t>(-first, 0); t < std::min(std::ssize(samples), std::ssize(all) - first);
       ++t)
    samples[static_cast<std::size_t>(t)] = static_cast<float>(all[static_cast<std::size_t>(first + t)]) / kFullScale;
  if (!noises_.empty()) {
    const double ratio_db = variation_.noise_db + kNoiseSpan * random.uniform();
    add_noise(samples, noises_[random.below(noises_.size())], ratio_db, random);
  }
  for (float& sample : samples) sample *= static_cast<float>(std::pow(10, gain_db / 20));
  front_end_.features(samples, example);
}

}  // namespace miniqat::datasets
