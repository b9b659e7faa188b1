#include "layers/chain/chain_pool.h"

#include "core/kernels/instruction_set.h"

namespace miniqat::layers {
namespace {

#define MINIQAT_LOOPS "layers/chain/chain_pool_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

void pool_window_row(const ChainPool& pool, const float* taps, const float* values, float pass_low, float pass_high,
                     float* y, std::uint8_t* winners, float* of_winners) {
  static const auto loop = MINIQAT_PICK(pool_windows);
  loop(pool, taps, values, pass_low, pass_high, y, winners, of_winners);
}

void unpool_window_row(const ChainPool& pool, const float* d_y, const std::uint8_t* winners, float* d_x) {
  static const auto loop = MINIQAT_PICK(unpool_windows);
  loop(pool, d_y, winners, d_x);
}

void add_passing(const float* d_y, const std::uint8_t* winners, std::int64_t width, std::int64_t first,
                 std::int64_t last, float* sums) {
  static const auto loop = MINIQAT_PICK(add_where_passing);
  loop(d_y, winners, width, first, last, sums);
}

}  // namespace miniqat::layers
