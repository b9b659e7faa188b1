#pragma once

#include <cstdint>
#include <vector>

#include "core/files/safetensors.h"
#include "datasets/part_data.h"
#include "datasets/sound/features.h"
#include "datasets/sound/sound.h"
#include "datasets/sound/variation.h"

namespace miniqat::datasets {

/// Makes the examples of a part out of its recordings.
class SoundStack {
 public:
  /// `variation`: if there is any, the samples are kept as well.
  SoundStack(const SoundOptions& options, const SoundVariation& variation, std::int64_t recordings);

  /// Takes recording `number`, whose rate is that of the options. Callable by several threads with different numbers.
  /// Throws Error for one that is shorter than an example of some steps.
  void put(std::int64_t number, const Sound& sound);

  /// Whether recording `number` was put or taken.
  bool has(std::int64_t number) const { return !features_[static_cast<std::size_t>(number)].empty(); }

  /// The bytes of content().
  std::int64_t bytes() const;
  /// Everything that was put, for a FileCache. It depends on the options, not on the variation.
  NamedTensors content() const;

  /// Takes the content of another stack of the same recordings and options, in the place of all putting. False, and
  /// nothing is taken, where that is something else or lacks the samples that are to be kept.
  bool take(const NamedTensors& content);

  /// Gives `data` its examples: with SoundOptions::frames all windows of a recording, else one; of a recording that was
  /// never put a single one of zeros. The files, classes and labels in it are those of the recordings before, and of
  /// the examples afterwards.
  void move_to(PartData& data);

 private:
  const SoundVariation variation_;
  const FrontEnd front_end_;
  /// All steps of each recording.
  std::vector<std::vector<float>> features_;
  std::vector<VariedSounds::Recording> samples_;
};

}  // namespace miniqat::datasets
