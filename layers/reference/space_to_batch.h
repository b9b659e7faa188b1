#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensors/shape.h"

namespace miniqat::layers::reference {

// SpaceToBatch, BatchToSpace and their gradients move elements between the image in space, [n, spatial axes, rest], and
// the blocks in the batch, [n * product of block_shape, spatial axes, rest]. `around` are the paddings, or crops, of
// the spatial axes; empty for none.

/// The place of element i of the image in the blocks.
inline std::int64_t index_in_blocks(std::int64_t i, const Shape& image, const Shape& blocks,
                                    std::span<const std::int64_t> block_shape,
                                    std::span<const std::array<std::int64_t, 2>> around) {
  const int spatial_axes = static_cast<int>(block_shape.size());
  std::vector<std::int64_t> at(image.rank());
  for (int axis = image.rank() - 1; axis >= 0; --axis) {
    at[axis] = i % image[axis];
    i /= image[axis];
  }
  std::int64_t block = 0;
  for (int k = 0; k < spatial_axes; ++k) {
    const std::int64_t padded = at[k + 1] + (around.empty() ? 0 : around[k][0]);
    block = block * block_shape[k] + padded % block_shape[k];
    at[k + 1] = padded / block_shape[k];
  }
  at[0] += block * image[0];
  std::int64_t index = 0;
  for (int axis = 0; axis < blocks.rank(); ++axis) index = index * blocks[axis] + at[axis];
  return index;
}

/// blocks = image, zeros where the image has no pixel.
template <class T>
void space_to_batch(const Shape& image_shape, const Shape& blocks_shape, std::span<const std::int64_t> block_shape,
                    std::span<const std::array<std::int64_t, 2>> around, const T* image, T* blocks) {
  std::fill(blocks, blocks + blocks_shape.elements(), T(0));
  for (std::int64_t i = 0; i < image_shape.elements(); ++i)
    blocks[index_in_blocks(i, image_shape, blocks_shape, block_shape, around)] = image[i];
}

/// image = blocks, leaving out what lies beside the image.
template <class T>
void batch_to_space(const Shape& image_shape, const Shape& blocks_shape, std::span<const std::int64_t> block_shape,
                    std::span<const std::array<std::int64_t, 2>> around, const T* blocks, T* image) {
  for (std::int64_t i = 0; i < image_shape.elements(); ++i)
    image[i] = blocks[index_in_blocks(i, image_shape, blocks_shape, block_shape, around)];
}

}  // namespace miniqat::layers::reference
