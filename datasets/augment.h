#pragma once

#include <cstdint>
#include <span>

#include "core/tensors/shape.h"

namespace miniqat::datasets {

/// How the examples of a training set are varied. The default leaves them as they are.
struct AugmentOptions {
  /// Pixels of real 0 put around a picture, out of which a crop of the picture's size is taken at random.
  int pad = 0;
  /// Mirror half of the pictures, chosen at random, left to right.
  bool flip = false;
  /// Vary sounds as their data set says (Dataset::sounds).
  bool vary_sounds = false;

  bool none() const { return pad == 0 && !flip && !vary_sounds; }
};

/// CIFAR-10's usual augmentation (He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2):
/// a pad of 4 and flips.
inline AugmentOptions crop_and_flip() { return {.pad = 4, .flip = true}; }

/// For digits, which have no mirror image.
inline AugmentOptions shift() { return {.pad = 2, .flip = false}; }

/// One way of varying a picture: pixel (y, x) of the result is pixel (y + top, x + left) of the picture, or
/// (y + top, w - 1 - x + left) if mirrored, and the ground wherever that is outside.
struct Augmentation {
  int top = 0;
  int left = 0;
  bool mirrored = false;
};

/// The change of the picture at `position` of a batch: a pure function of the arguments, uniform over the crops and
/// flips that `options` allow.
Augmentation draw_augmentation(const AugmentOptions& options, std::uint64_t seed, std::int64_t batch,
                               std::int64_t position);

/// Applies it to the bytes of a picture of the given shape [h, w, c]. `ground` is the byte of real 0, the data set's
/// zero point. `result` has the picture's size and does not overlap it.
void augment(const Augmentation& augmentation, const Shape& shape, std::span<const std::uint8_t> picture,
             std::uint8_t ground, std::span<std::uint8_t> result);

}  // namespace miniqat::datasets
