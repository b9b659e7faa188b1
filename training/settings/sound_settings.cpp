#include "training/settings/sound_settings.h"

#include <algorithm>
#include <filesystem>

#include "datasets/known_datasets.h"

namespace miniqat::training {

bool draws_sounds(const std::string& dataset) {
  return std::ranges::any_of(datasets::known_datasets(), [&](const datasets::KnownDataset& known) {
    return known.name == dataset && known.sounds;
  });
}

datasets::SoundOptions SoundSettings::options(const std::string& dataset) const {
  datasets::SoundOptions options;
  if (draws_sounds(dataset)) options = *datasets::find_dataset(dataset).sounds;
  const std::int64_t rate = sample_rate.value_or(options.rate);
  if (frames.value_or(options.frames) > 0) options = datasets::anomaly_detector(rate);
  if (features != datasets::Features::kAuto) options.features = features;
  options.rate = rate;
  options.frames = frames.value_or(options.frames);
  if (options.frames == 0 && options.seconds == 0) options.seconds = datasets::SoundOptions().seconds;
  options.seconds = seconds.value_or(options.seconds);
  options.window_ms = window_ms.value_or(options.window_ms);
  options.stride_ms = stride_ms.value_or(options.stride_ms);
  options.bands = bands.value_or(options.bands);
  options.coefficients = coefficients.value_or(options.coefficients);
  options.low_hz = low_hz.value_or(options.low_hz);
  options.high_hz = high_hz.value_or(options.high_hz);
  options.mel_scale = mel_scale;
  options.silence = silence;
  check_options<SoundSettings>([&] { options.check(); });
  return options;
}

datasets::SoundVariation SoundSettings::variation() const {
  return {.shift_ms = shift_ms, .gain_db = gain_db, .noise = noise, .noise_db = noise_db};
}

void SoundSettings::check(const std::string& dataset) const {
  check_limits(table(), *this);
  if (noise.empty() && noise_db != SoundSettings().noise_db)
    throw UsageError("--noise-db goes with --noise, a folder of sounds");
  options(dataset);
}

void SoundSettings::resolve(const std::string& dataset) {
  const datasets::SoundOptions all = options(dataset);
  features = all.features;
  frames = all.frames;
  sample_rate = all.rate;
  seconds = all.seconds;
  window_ms = all.window_ms;
  stride_ms = all.stride_ms;
  bands = all.bands;
  coefficients = all.coefficients;
  low_hz = all.low_hz;
  high_hz = all.high_hz;
  if (draws_sounds(dataset) && !snr_db) snr_db = datasets::find_dataset(dataset).snr_db;
  if (!noise.empty()) noise = std::filesystem::absolute(noise).lexically_normal().string();
}

}  // namespace miniqat::training
