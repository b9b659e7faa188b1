#include "core/kernels/packed.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/kernels/instruction_set.h"
#include "core/kernels/repeated_row.h"
#include "core/kernels/scratch.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

#define MINIQAT_LOOPS "core/kernels/packed_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

bool pack(const float* y, std::int64_t n, const CodeGrid& grid, std::uint8_t* codes) {
  static const auto loop = MINIQAT_PICK(pack_one);
  return loop(y, n, 1 / grid.scale, grid.zero_point + 0.5f, codes);
}

void pack(const PackedForm& form, const float* y, Tensor& bytes) {
  static const auto loop = MINIQAT_PICK(pack_row);
  const std::span<CodeGrid> grids = packed_grids(form, bytes);
  auto* codes = bytes.data<std::uint8_t>();
  std::atomic<bool> nan = false;
  const auto note = [&nan](bool found) {
    if (found) nan.store(true, std::memory_order_relaxed);
  };
  if (grids.size() == 1) {
    parallel_for(form.elements, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      note(pack(y + begin, end - begin, grids[0], codes + begin));
    });
  } else {
    ScratchScope scope;
    const auto inverse = repeated_row<float>(scope, form.grids, [&](std::int64_t c) { return 1 / grids[c].scale; });
    const auto rounding =
        repeated_row<float>(scope, form.grids, [&](std::int64_t c) { return grids[c].zero_point + 0.5f; });
    for_repeated_rows(form.elements, form.grids, [&](std::int64_t first, std::int64_t n) {
      note(loop(y + first, n, inverse.data(), rounding.data(), codes + first));
    });
  }
  if (nan)
    for (CodeGrid& grid : grids) grid.scale = std::numeric_limits<float>::quiet_NaN();
}

void unpack(const PackedForm& form, const Tensor& bytes, float* y) {
  static const auto one = MINIQAT_PICK(unpack_one);
  static const auto row = MINIQAT_PICK(unpack_row);
  const auto [codes, grids] = packed_tensor(form, bytes);
  if (grids.size() == 1) {
    parallel_for(form.elements, kPointwiseGrain,
                 [&, from = codes, grid = grids[0]](std::int64_t begin, std::int64_t end) {
                   one(from + begin, end - begin, grid.scale, grid.zero_point, y + begin);
                 });
    return;
  }
  ScratchScope scope;
  const auto scale = repeated_row<float>(scope, form.grids, [&of = grids](std::int64_t c) { return of[c].scale; });
  const auto zero_point =
      repeated_row<float>(scope, form.grids, [&of = grids](std::int64_t c) { return of[c].zero_point; });
  for_repeated_rows(form.elements, form.grids, [&, from = codes](std::int64_t first, std::int64_t n) {
    row(from + first, n, scale.data(), zero_point.data(), y + first);
  });
}

}  // namespace miniqat
