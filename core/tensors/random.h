#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace miniqat {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four random words from a
/// 128-bit counter and a 64-bit key, without state. Number i is the same whoever asks, in whatever order or thread.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high = 0);

/// FNV-1a of a text: turns names into keys.
std::uint64_t hash_text(std::string_view text);
/// Mixes two keys into one (splitmix64's finaliser).
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

/// A stream of numbers for sequential use.
class Random {
 public:
  explicit Random(std::uint64_t key) : key_(key) {}

  std::uint32_t bits();
  /// In [0, 1), 24 bits.
  float uniform();
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// In [0, bound), without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box-Muller).
  float normal();
  /// Standard normal, drawn again while outside [-2, 2].
  float truncated_normal();

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int left_ = 0;
};

}  // namespace miniqat
