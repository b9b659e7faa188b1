#include "layers/chain/chain_rounding.h"

#include <algorithm>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

namespace miniqat::layers {
namespace {

constexpr int kRoundingLanes = 32;
/// float32 sums run over this many numbers, then go on in float64.
constexpr std::int64_t kFlush = 64 * kRoundingLanes;

#define MINIQAT_LOOPS "layers/chain/chain_rounding_loops.h"
#include "core/kernels/per_instruction_set.h"

RoundingSums sums_of(const float* d_y, const std::int16_t* codes, std::int64_t n) {
  const auto loop = MINIQAT_PICK(add_up);
  RoundingSums sums;
  for (std::int64_t at = 0; at < n; at += kFlush) {
    float below[kRoundingLanes] = {}, above[kRoundingLanes] = {}, inside[kRoundingLanes] = {};
    loop(d_y + at, codes + at, std::min(kFlush, n - at), below, above, inside);
    for (int lane = 0; lane < kRoundingLanes; ++lane) {
      sums.below += below[lane];
      sums.above += above[lane];
      sums.inside += inside[lane];
    }
  }
  return sums;
}

}  // namespace

void rounding_codes(const float* v, const float* y, std::int64_t n, float scale, float lowest, float highest,
                    std::int16_t* codes) {
  static const auto loop = MINIQAT_PICK(encode);
  // Finite, so that no rounding at all stays 0 in the smallest ranges, too.
  const float codes_a_unit = std::min(kRoundingCodes / scale, std::numeric_limits<float>::max());
  loop(v, y, n, codes_a_unit, lowest, highest, codes);
}

RoundingSums rounding_sums(const float* d_y, const std::int16_t* codes, std::int64_t n) {
  const int parts = parallel_parts(n, kPointwiseGrain);
  ScratchScope scope;
  const std::span<RoundingSums> of_part = scope.filled<RoundingSums>(static_cast<std::size_t>(parts), {});
  parallel_shares(n, parts, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    of_part[static_cast<std::size_t>(part)] = sums_of(d_y + begin, codes + begin, end - begin);
  });
  RoundingSums total;
  for (const RoundingSums& sums : of_part) {
    total.below += sums.below;
    total.above += sums.above;
    total.inside += sums.inside;
  }
  total.inside /= kRoundingCodes;
  return total;
}

}  // namespace miniqat::layers
