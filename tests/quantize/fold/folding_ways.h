#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/tensors/random.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing {

/// How batch norms fold, beside the ranges of weights.
struct FoldingWay {
  quantize::BnFold fold = quantize::BnFold::kTf;
  bool per_channel = false;

  std::string name() const {
    constexpr const char* kNames[] = {"Corrected", "Single", "Late"};
    return std::string(kNames[static_cast<int>(fold)]) + (per_channel ? "PerChannel" : "PerTensor");
  }
};

/// All there are: late folding takes a range for each channel.
inline std::vector<FoldingWay> folding_ways() {
  using quantize::BnFold;
  return {{BnFold::kTf, false},
          {BnFold::kSingle, false},
          {BnFold::kTf, true},
          {BnFold::kSingle, true},
          {BnFold::kLate, true}};
}

/// Two of them, or all in nightly runs: other two for every name.
inline std::vector<FoldingWay> two_folding_ways(const std::string& name) {
  std::vector<FoldingWay> ways = folding_ways();
  if (tries_all_cases()) return ways;
  std::ranges::rotate(ways, ways.begin() + static_cast<std::ptrdiff_t>(hash_text(name) % ways.size()));
  return {ways[0], ways[2]};
}

/// The folding in options that are drawn at random, at times late in their stead.
template <class Random>
void draw_late_folding(quantize::RewriteOptions& options, Random random) {
  if (random.below(3) != 0) return;
  options.bn_fold = quantize::BnFold::kLate;
  options.per_channel = true;
  options.scales = quantize::ScaleChoice::kAny;
  for (quantize::LayerBits& bits : options.layer_bits)
    if (bits.per_channel == false) bits.per_channel.reset();
}

}  // namespace miniqat::testing
