#pragma once

#include <cstdint>

namespace miniqat::layers {

/// A mask has one bit an element, in blocks of 512 elements = 16 words: element i of a block is bit i / 16 of word
/// i % 16. So 16 neighbours sit in 16 words, at the same bit, and a vector register of words fills and empties with
/// shifts alone; nothing is ever packed across lanes.
inline constexpr int kMaskLanes = 16;
inline constexpr std::int64_t kMaskBlock = 32 * kMaskLanes;
constexpr std::int64_t mask_blocks(std::int64_t n) { return (n + kMaskBlock - 1) / kMaskBlock; }
/// Words of a mask for n elements.
constexpr std::int64_t mask_words(std::int64_t n) { return mask_blocks(n) * kMaskLanes; }

}  // namespace miniqat::layers
