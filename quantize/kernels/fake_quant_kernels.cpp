#include "quantize/kernels/fake_quant_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/threads/parallel.h"

namespace miniqat::quantize {
namespace {

#define MINIQAT_LOOPS "quantize/kernels/fake_quant_loops.h"
#include "core/kernels/per_instruction_set.h"

#define MINIQAT_TABLE(set) \
  { &set::forward_one, &set::forward_rows, &set::forward_mask, &set::masked, &set::gradient_rows }

constexpr FakeQuantLoops kBaseline = MINIQAT_TABLE(baseline);
#if MINIQAT_HAS_INSTRUCTION_SETS
constexpr FakeQuantLoops kAvx2 = MINIQAT_TABLE(avx2);
constexpr FakeQuantLoops kAvx512 = MINIQAT_TABLE(avx512);
#endif

using layers::ColumnParts;

/// A second thread costs what the first one needs for about this many elements, at 5 to 9 of them a nanosecond.
constexpr std::int64_t kGrain = 32768;
/// Within its share a thread takes tiles of about this many elements. (Tiles of a quarter of that gain less.)
constexpr std::int64_t kTile = 262144;
/// Sums over a tensor are taken in at most this many parts.
constexpr std::int64_t kMaxParts = 64;

const FakeQuantLoops& loops() { return fake_quant_loops(instruction_set()); }

std::int64_t divide_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step; }

/// Calls body(from, count) for tiles of n elements, in parallel; they begin at multiples of `unit`. Every thread starts
/// with the last tile of its share: whoever wrote or read the tensor before ended there, so that is what the cache
/// still holds of it.
template <class Body>
void for_tiles(std::int64_t n, std::int64_t unit, const Body& body) {
  const std::int64_t tile = divide_up(kTile, unit);
  parallel_for(divide_up(n, unit), divide_up(kGrain, unit), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t end = last; end > first; end = std::max(first, end - tile)) {
      const std::int64_t from = std::max(first, end - tile) * unit;
      body(from, std::min(n, end * unit) - from);
    }
  });
}

/// Calls body(at, from, count) for contiguous runs of whole rows (the last row may be short), in parallel: one for
/// every part, whose accumulators begin at `at`.
template <class Body>
void for_parts(std::int64_t n, const ColumnParts& columns, const Body& body) {
  const std::int64_t width = columns.width, parts = columns.parts, rows = divide_up(n, width);
  parallel_for(parts, divide_up(parts * kGrain, std::max<std::int64_t>(n, 1)),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t part = first; part < last; ++part) {
                   const std::int64_t from = rows * part / parts * width;
                   body(part * columns.stride(), from, std::min(n, rows * (part + 1) / parts * width) - from);
                 }
               });
}

/// Fills the rest of an array with its first `filled` elements, over and over.
void repeat(std::span<float> array, std::size_t filled) {
  while (filled < array.size()) {
    const std::size_t count = std::min(filled, array.size() - filled);
    std::copy_n(array.begin(), count, array.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += count;
  }
}

}  // namespace

const FakeQuantLoops& fake_quant_loops([[maybe_unused]] InstructionSet set) {
#if MINIQAT_HAS_INSTRUCTION_SETS
  if (set == InstructionSet::kAvx512) return kAvx512;
  if (set == InstructionSet::kAvx2) return kAvx2;
#endif
  return kBaseline;
}

ChannelGrids channel_grids(std::span<const Affine<float>> grids, ScratchScope& scope) {
  if (grids.empty()) return {};
  const std::size_t channels = grids.size();
  const std::int64_t width = layers::row_width(static_cast<std::int64_t>(channels));
  const std::size_t length = static_cast<std::size_t>(width + ChannelGrids::kBeyond);
  const std::span<float> scale = scope.take<float>(length);
  const std::span<float> offset = scope.take<float>(length);
  const std::span<float> nudged_max = scope.take<float>(length);
  for (std::size_t c = 0; c < channels; ++c) {
    scale[c] = grids[c].scale;
    offset[c] = grids[c].quant_min - grids[c].zero_point;
    nudged_max[c] = grids[c].nudged_max;
  }
  for (const std::span<float> array : {scale, offset, nudged_max}) repeat(array, channels);
  return {static_cast<std::int64_t>(channels), width, scale.data(), offset.data(), nudged_max.data()};
}

void fake_quant_piece(const float* x, float* y, std::int64_t n, const ChannelGrids& grids) {
  if (grids.channels == 1) return loops().forward_one(x, y, n, grids);
  if (grids.channels > 1) loops().forward_rows(x, y, n, grids);
}

void fake_quant_piece(const float* x, float* y, std::int64_t n, const Affine<float>& grid) {
  const float offset = grid.quant_min - grid.zero_point;
  // Reads the first element of each array only.
  loops().forward_one(x, y, n, {1, layers::row_width(1), &grid.scale, &offset, &grid.nudged_max});
}

void fake_quant_forward(const float* x, float* y, std::int64_t n, const ChannelGrids& grids, std::uint32_t* mask) {
  if (grids.channels == 0) return;
  if (mask) {
    for_tiles(n, kMaskBlock, [&](std::int64_t from, std::int64_t count) {
      std::uint32_t* words = mask + from / kMaskBlock * kMaskLanes;
      loops().forward_mask(x + from, y + from, count, words, grids, from % grids.width);
    });
  } else {
    const std::int64_t unit = grids.channels == 1 ? kMaskBlock : grids.width;
    for_tiles(n, unit,
              [&](std::int64_t from, std::int64_t count) { fake_quant_piece(x + from, y + from, count, grids); });
  }
}

void fake_quant_forward(const float* x, float* y, std::int64_t n, std::span<const Affine<float>> grids,
                        std::uint32_t* mask) {
  ScratchScope scope;
  fake_quant_forward(x, y, n, channel_grids(grids, scope), mask);
}

void fake_quant_backward(const float* dy, float* dx, std::int64_t n, const std::uint32_t* mask) {
  for_tiles(n, kMaskBlock, [&](std::int64_t from, std::int64_t count) {
    loops().masked(dy + from, dx + from, count, mask + from / kMaskBlock * kMaskLanes);
  });
}

void fake_quant_backward(const float* x, const float* dy, std::int64_t n, const ChannelGrids& grids, float* dx,
                         std::span<RangeSums> sums, bool with_inside, float pull) {
  if (grids.channels == 0) return;
  if (sums.empty()) {
    if (!dx) return;
    for_tiles(n, grids.width, [&](std::int64_t from, std::int64_t count) {
      loops().gradient_rows(x + from, dy + from, dx + from, count, grids, nullptr, nullptr, nullptr, pull);
    });
    return;
  }
  // The parts, and with them the order of every sum, depend on the tensor alone.
  const ColumnParts columns = {.channels = grids.channels,
                               .width = grids.width,
                               .parts = std::clamp<std::int64_t>(n / std::max(kGrain, grids.width), 1, kMaxParts)};
  ScratchScope scope;
  const std::span<double> below = scope.filled(columns.size(), 0.0);
  const std::span<double> above = scope.filled(columns.size(), 0.0);
  const std::span<double> inside = scope.filled(with_inside ? columns.size() : 0, 0.0);
  for_parts(n, columns, [&](std::int64_t at, std::int64_t from, std::int64_t count) {
    loops().gradient_rows(x + from, dy + from, dx ? dx + from : nullptr, count, grids, &below[at], &above[at],
                          with_inside ? &inside[at] : nullptr, pull);
  });
  for (std::int64_t c = 0; c < grids.channels; ++c) {
    RangeSums& sum = sums[static_cast<std::size_t>(c)] = {};
    columns.for_each(c, [&](std::int64_t i, std::int64_t) {
      sum.below += below[i];
      sum.above += above[i];
      if (with_inside) sum.inside += inside[i];
    });
  }
}

void copy_floats(const float* x, float* y, std::int64_t n) {
  if (x == y) return;
  parallel_for(n, kGrain, [&](std::int64_t from, std::int64_t to) {
    std::memcpy(y + from, x + from, static_cast<std::size_t>(to - from) * sizeof(float));
  });
}

}  // namespace miniqat::quantize
