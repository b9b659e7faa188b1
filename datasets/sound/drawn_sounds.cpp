#include "datasets/sound/drawn_sounds.h"

#include <cmath>
#include <numbers>

#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "datasets/parts.h"
#include "datasets/sound/sound_stack.h"

namespace miniqat::datasets {
namespace {

/// The recording, with noise of this share of its power.
Sound drawn_sound(const DrawnSounds& sounds, std::int32_t label, double noise_share, Random& random) {
  Sound sound{.samples = std::vector<float>(static_cast<std::size_t>(sounds.seconds * kDrawnRate)),
              .rate = static_cast<std::int64_t>(kDrawnRate)};
  sounds.draw(label, random, sound.samples);
  double power = 0;
  for (const float sample : sound.samples) power += static_cast<double>(sample) * sample;
  // Uniform numbers of -1 to 1 have the power 1/3.
  const double noise = std::sqrt(3 * noise_share * power / static_cast<double>(sound.samples.size()));
  for (float& sample : sound.samples)
    sample = static_cast<float>(sample_bits(sample + static_cast<float>(noise * random.uniform(-1, 1)))) / 32768;
  return sound;
}

PartData drawn_part(const DrawnSounds& sounds, Part part, std::int64_t count, const LoadOptions& options) {
  constexpr std::int64_t kMost = 100000;
  if (count < 1 || count > kMost)
    fail(sounds.name, ": the ", title_of(part), " part must have 1 to ", kMost, " recordings, not ", count);
  const std::uint64_t key = mix(hash_text(concat(sounds.name, "/", title_of(part))), options.seed);
  const double noise_share = std::pow(10, -options.snr_db.value_or(sounds.snr_db) / 10);
  SoundStack stack(*options.sounds, part == Part::kTrain ? options.variation : SoundVariation(), count);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(sounds.label(part, i));
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      Random random(mix(key, static_cast<std::uint64_t>(i)));
      const Sound sound = drawn_sound(sounds, labels[static_cast<std::size_t>(i)], noise_share, random);
      stack.put(i, resampled(sound, options.sounds->rate));
    }
  });
  PartData data{.images = {}, .labels = Tensor::from<std::int32_t>({count}, labels)};
  stack.move_to(data);
  return data;
}

}  // namespace

Splits draw_sounds(const DrawnSounds& sounds, const LoadOptions& given) {
  LoadOptions options = given;
  if (!options.sounds) options.sounds = sounds.front_end;
  FoundParts parts{.found = {}, .class_names = sounds.classes};
  parts.found[Part::kTrain] = drawn_part(sounds, Part::kTrain, options.train_size.value_or(sounds.train_size), options);
  parts.found[Part::kTest] = drawn_part(sounds, Part::kTest, options.test_size.value_or(sounds.test_size), options);
  return splits_of(sounds.name, std::move(parts), options);
}

Resonator::Resonator(double hertz, double bandwidth) {
  const double radius = std::exp(-std::numbers::pi * bandwidth / kDrawnRate);
  a_ = 2 * radius * std::cos(2 * std::numbers::pi * hertz / kDrawnRate);
  b_ = -radius * radius;
}

double Resonator::next(double input) {
  const double output = input + a_ * last_ + b_ * before_;
  before_ = last_;
  return last_ = output;
}

}  // namespace miniqat::datasets
