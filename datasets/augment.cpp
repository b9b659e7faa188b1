#include "datasets/augment.h"

#include <algorithm>

#include "core/tensors/random.h"

namespace miniqat::datasets {

namespace {

/// In [-pad, pad].
int draw_shift(Random& random, int pad) { return static_cast<int>(random.below(2 * std::uint64_t(pad) + 1)) - pad; }

}  // namespace

Augmentation draw_augmentation(const AugmentOptions& options, std::uint64_t seed, std::int64_t batch,
                               std::int64_t position) {
  const std::uint64_t run = mix(hash_text("datasets/augment"), seed);
  Random random(mix(mix(run, static_cast<std::uint64_t>(batch)), static_cast<std::uint64_t>(position)));
  Augmentation augmentation;
  augmentation.top = draw_shift(random, options.pad);
  augmentation.left = draw_shift(random, options.pad);
  augmentation.mirrored = options.flip && random.below(2) == 1;
  return augmentation;
}

void augment(const Augmentation& augmentation, const Shape& shape, std::span<const std::uint8_t> picture,
             std::uint8_t ground, std::span<std::uint8_t> result) {
  const std::int64_t height = shape[0], width = shape[1], channels = shape[2];
  const auto [top, left, mirrored] = augmentation;
  // The visible part of the picture: rows [first_y, end_y), columns [first_x, end_x).
  const std::int64_t first_y = std::max<std::int64_t>(top, 0), end_y = std::min(height, height + top);
  const std::int64_t first_x = std::max<std::int64_t>(left, 0), end_x = std::min(width, width + left);
  if (top != 0 || left != 0) std::ranges::fill(result, ground);
  for (std::int64_t y = first_y; y < end_y; ++y) {
    const std::uint8_t* from = picture.data() + y * width * channels;
    std::uint8_t* to = result.data() + (y - top) * width * channels;
    if (!mirrored) {
      std::copy(from + first_x * channels, from + end_x * channels, to + (first_x - left) * channels);
      continue;
    }
    for (std::int64_t x = first_x; x < end_x; ++x)
      std::copy_n(from + x * channels, channels, to + (width - 1 - x + left) * channels);
  }
}

}  // namespace miniqat::datasets
