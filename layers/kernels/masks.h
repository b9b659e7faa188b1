#pragma once

#include <bit>
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

/// value where `is_kept`, else 0, chosen by its bits. (A choice of numbers GCC carries on into the sums behind it, and
/// then computes both sums: in sums of doubles and of three kinds this costs two to four times the work.)
[[gnu::always_inline]] inline float kept_if(bool is_kept, float value) {
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(value) & -static_cast<std::int32_t>(is_kept));
}

}  // namespace miniqat::layers
