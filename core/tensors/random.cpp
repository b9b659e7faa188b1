#include "core/tensors/random.h"

#include <cmath>
#include <numbers>

namespace miniqat {
namespace {

std::uint64_t finalise(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high_word(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  // Section 3.3 of the paper: multipliers found by search, key increments from the golden ratio and sqrt(3) - 1.
  constexpr std::uint64_t kMultiplier0 = 0xd2511f53;
  constexpr std::uint64_t kMultiplier1 = 0xcd9e8d57;
  constexpr std::uint32_t kWeyl0 = 0x9e3779b9;
  constexpr std::uint32_t kWeyl1 = 0xbb67ae85;
  constexpr int kRounds = 10;

  std::array<std::uint32_t, 4> c = {low_word(counter_low), high_word(counter_low), low_word(counter_high),
                                    high_word(counter_high)};
  std::uint32_t key0 = low_word(key);
  std::uint32_t key1 = high_word(key);
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c[0];
    const std::uint64_t product1 = kMultiplier1 * c[2];
    c = {high_word(product1) ^ c[1] ^ key0, low_word(product1), high_word(product0) ^ c[3] ^ key1, low_word(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The first key is finalised on its own, so that (a, b) and (b, a), or (a + 1, b - 1), don't meet.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return finalise(finalise(a) + 0x9e3779b97f4a7c15 + b); }

std::uint32_t Random::bits() {
  if (left_ == 0) {
    block_ = philox(key_, counter_++);
    left_ = 4;
  }
  return block_[4 - left_--];
}

float Random::uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }

std::uint64_t Random::below(std::uint64_t bound) {
  // The lowest 2^64 mod bound draws are refused: what remains is a whole number of rounds through [0, bound).
  const std::uint64_t refused = (0 - bound) % bound;
  while (true) {
    const std::uint64_t high = bits();
    const std::uint64_t draw = (high << 32) | bits();
    if (draw >= refused) return draw % bound;
  }
}

float Random::normal() {
  const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform()));  // 1 - uniform is never 0
  return radius * std::cos(2.0f * std::numbers::pi_v<float> * uniform());
}

float Random::truncated_normal() {
  while (true) {
    const float draw = normal();
    if (std::abs(draw) <= 2.0f) return draw;
  }
}

}  // namespace miniqat
