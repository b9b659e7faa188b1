#include "quantize/fake_quant_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/instruction_set.h"
#include "core/parallel.h"

// One source, compiled for several instruction sets; the loader picks. The arithmetic (affine.h) gives the same bits
// on each. Sanitizers cannot run before the loader has picked, so they get the baseline.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MINIQAT_VECTORISED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MINIQAT_VECTORISED
#endif
// Bodies that the functions above share must become part of each clone.
#define MINIQAT_INLINE [[gnu::always_inline]] inline

namespace miniqat::quantize {
namespace {

#define MINIQAT_LOOPS "quantize/fake_quant_loops.h"
#include "core/per_instruction_set.h"

constexpr std::int64_t kGrainBlocks = kPointwiseGrain / kMaskBlock;

/// One grid for all elements.
struct OneGrid {
  Affine<float> grid;

  // Member by member: GCC keeps the copy of a whole struct in memory, and then doesn't vectorise the loop.
  MINIQAT_INLINE Affine<float> at(std::int64_t) const {
    return {grid.scale, grid.zero_point, grid.quant_min, grid.quant_max, grid.nudged_min, grid.nudged_max};
  }
  MINIQAT_INLINE OneGrid from(std::int64_t) const { return {at(0)}; }
};

/// Element i has grid i % channels. The members lie in arrays of their own, and these repeat beyond `channels`, so that
/// a block of elements reads one stretch of them, whatever the channel it starts with.
struct GridRow {
  const float* scale;
  const float* zero_point;
  const float* nudged_min;
  const float* nudged_max;
  float quant_min;
  float quant_max;
  std::int64_t channels;

  MINIQAT_INLINE Affine<float> at(std::int64_t i) const {
    return {scale[i], zero_point[i], quant_min, quant_max, nudged_min[i], nudged_max[i]};
  }
  MINIQAT_INLINE GridRow from(std::int64_t element) const {
    const std::int64_t c = element % channels;
    return {scale + c, zero_point + c, nudged_min + c, nudged_max + c, quant_min, quant_max, channels};
  }
};

/// The memory of a GridRow of `length` elements.
class GridTable {
 public:
  GridTable(std::span<const Affine<float>> grids, std::int64_t length) : grids_(grids), length_(length) {
    memory_.reserve(4 * length);
    for (auto member :
         {&Affine<float>::scale, &Affine<float>::zero_point, &Affine<float>::nudged_min, &Affine<float>::nudged_max}) {
      for (const Affine<float>& grid : grids) memory_.push_back(grid.*member);
      for (std::size_t i = grids.size(); i < static_cast<std::size_t>(length); ++i)
        memory_.push_back(memory_[memory_.size() - grids.size()]);
    }
  }

  GridRow row() const {
    const float* start = memory_.data();
    return {start,
            start + length_,
            start + 2 * length_,
            start + 3 * length_,
            grids_[0].quant_min,
            grids_[0].quant_max,
            static_cast<std::int64_t>(grids_.size())};
  }

 private:
  std::span<const Affine<float>> grids_;
  std::int64_t length_;
  std::vector<float> memory_;
};

/// Calls body(offset, count) for blocks first..last of n elements; only the last block of all may be short.
template <class Body>
MINIQAT_INLINE void for_blocks(std::int64_t first, std::int64_t last, std::int64_t n, const Body& body) {
  for (std::int64_t block = first; block < last; ++block)
    body(block * kMaskBlock, std::min(kMaskBlock, n - block * kMaskBlock));
}

template <bool kMask, class Grids>
MINIQAT_INLINE void forward_block(const float* x, float* y, std::uint32_t* mask, Grids grids) {
  std::uint32_t words[kMaskLanes] = {};
  for (int bit = 0; bit < 32; ++bit) {
#pragma omp simd
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      const int i = bit * kMaskLanes + lane;
      const Affine<float> grid = grids.at(i);
      const float value = x[i];
      if (kMask) words[lane] |= (gradient_passes(grid, value) ? 1u : 0u) << bit;
      y[i] = fake_quantize(grid, value);
    }
  }
  if (kMask) std::copy_n(words, kMaskLanes, mask);
}

template <bool kMask, class Grids>
MINIQAT_INLINE void forward_blocks(const float* x, float* y, std::int64_t n, std::uint32_t* mask, const Grids& grids,
                                   std::int64_t first, std::int64_t last) {
  for_blocks(
      first, last, n, [&](std::int64_t at, std::int64_t count) __attribute__((always_inline)) {
        std::uint32_t* words = kMask ? mask + at / kMaskBlock * kMaskLanes : nullptr;
        if (count == kMaskBlock) return forward_block<kMask>(x + at, y + at, words, grids.from(at));
        float whole[kMaskBlock] = {};
        std::copy_n(x + at, count, whole);
        forward_block<kMask>(whole, whole, words, grids.from(at));
        std::copy_n(whole, count, y + at);
      });
}

MINIQAT_VECTORISED void forward_one(const float* x, float* y, std::int64_t n, std::uint32_t* mask, OneGrid grids,
                                    std::int64_t first, std::int64_t last) {
  if (mask)
    forward_blocks<true>(x, y, n, mask, grids, first, last);
  else
    forward_blocks<false>(x, y, n, mask, grids, first, last);
}

MINIQAT_VECTORISED void forward_row(const float* x, float* y, std::int64_t n, std::uint32_t* mask, GridRow grids,
                                    std::int64_t first, std::int64_t last) {
  if (mask)
    forward_blocks<true>(x, y, n, mask, grids, first, last);
  else
    forward_blocks<false>(x, y, n, mask, grids, first, last);
}

MINIQAT_INLINE void masked_block(const float* dy, float* dx, const std::uint32_t* words) {
  for (int bit = 0; bit < 32; ++bit) {
#pragma omp simd
    for (int lane = 0; lane < kMaskLanes; ++lane) {
      const int i = bit * kMaskLanes + lane;
      const float value = dy[i];
      dx[i] = (words[lane] >> bit) & 1 ? value : 0.0f;
    }
  }
}

MINIQAT_VECTORISED void masked_blocks(const float* dy, float* dx, std::int64_t n, const std::uint32_t* mask,
                                      std::int64_t first, std::int64_t last) {
  for_blocks(
      first, last, n, [&](std::int64_t at, std::int64_t count) __attribute__((always_inline)) {
        const std::uint32_t* words = mask + at / kMaskBlock * kMaskLanes;
        if (count == kMaskBlock) return masked_block(dy + at, dx + at, words);
        float whole[kMaskBlock] = {};
        std::copy_n(dy + at, count, whole);
        masked_block(whole, whole, words);
        std::copy_n(whole, count, dx + at);
      });
}

/// Elements from..to of a tensor whose row i % width takes part in accumulator i % width. `from` starts a row.
MINIQAT_VECTORISED std::uint32_t min_max_rows(const float* x, std::int64_t from, std::int64_t to, std::int64_t width,
                                              float* low, float* high) {
  std::uint32_t not_a_number = 0;
  for (std::int64_t row = from; row < to; row += width) {
    const std::int64_t count = std::min(width, to - row);
#pragma omp simd reduction(| : not_a_number)
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = x[row + i];
      low[i] = value < low[i] ? value : low[i];
      high[i] = value > high[i] ? value : high[i];
      not_a_number |= value != value ? 1u : 0u;
    }
  }
  return not_a_number;
}

MINIQAT_VECTORISED void range_gradient_rows(const float* x, const float* dy, std::int64_t from, std::int64_t to,
                                            std::int64_t width, GridRow grids, double* below, double* above) {
  for (std::int64_t row = from; row < to; row += width) {
    const std::int64_t count = std::min(width, to - row);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const Affine<float> grid = grids.at(i);
      const float value = x[row + i];
      const float gradient = grid.empty() ? 0.0f : dy[row + i];
      below[i] += value < grid.nudged_min ? gradient : 0.0f;
      above[i] += value > grid.nudged_max ? gradient : 0.0f;
    }
  }
}

MINIQAT_VECTORISED void gradient_rows(const float* x, const float* dy, float* dx, std::int64_t from, std::int64_t to,
                                      std::int64_t width, GridRow grids) {
  for (std::int64_t row = from; row < to; row += width) {
    const std::int64_t count = std::min(width, to - row);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float gradient = dy[row + i];
      dx[row + i] = gradient_passes(grids.at(i), x[row + i]) ? gradient : 0.0f;
    }
  }
}

/// Loops that accumulate per channel take rows of this many elements: a multiple of the channels, long enough to
/// vectorise however few these are.
std::int64_t row_width(std::int64_t channels) { return (255 / channels + 1) * channels; }

/// Calls body(part, from, to) for contiguous runs of whole rows (the last may be short), in parallel.
template <class Body>
void parallel_rows(std::int64_t n, std::int64_t width, int parts, const Body& body) {
  const std::int64_t rows = (n + width - 1) / width;
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part)
      body(part, rows * part / parts * width, std::min(n, rows * (part + 1) / parts * width));
  });
}

/// How far apart the accumulators of two parts lie: two cache lines more than they need, so that no line is shared.
std::int64_t part_stride(std::int64_t width) { return width + 32; }

}  // namespace

void fake_quant_forward(const float* x, float* y, std::int64_t n, std::span<const Affine<float>> grids,
                        std::uint32_t* mask) {
  if (grids.empty()) return;
  const std::int64_t blocks = mask_words(n) / kMaskLanes;
  if (grids.size() == 1) {
    parallel_for(blocks, kGrainBlocks, [&](std::int64_t first, std::int64_t last) {
      forward_one(x, y, n, mask, OneGrid{grids[0]}, first, last);
    });
    return;
  }
  const GridTable table(grids, static_cast<std::int64_t>(grids.size()) + kMaskBlock);
  parallel_for(blocks, kGrainBlocks,
               [&](std::int64_t first, std::int64_t last) { forward_row(x, y, n, mask, table.row(), first, last); });
}

void fake_quant_piece(const float* x, float* y, std::int64_t n, const ChannelGrids& grids) {
  if (grids.channels == 0) return;
  if (grids.channels == 1) return MINIQAT_PICK(forward_one)(x, y, n, grids);
  MINIQAT_PICK(forward_row)(x, y, n, grids, 0);
}

void fake_quant_backward(const float* dy, float* dx, std::int64_t n, const std::uint32_t* mask) {
  parallel_for(mask_words(n) / kMaskLanes, kGrainBlocks,
               [&](std::int64_t first, std::int64_t last) { masked_blocks(dy, dx, n, mask, first, last); });
}

void fake_quant_backward(const float* x, const float* dy, std::int64_t n, std::span<const Affine<float>> grids,
                         float* dx, float* d_min, float* d_max) {
  if (grids.empty()) return;
  const std::int64_t channels = static_cast<std::int64_t>(grids.size());
  const std::int64_t width = row_width(channels);
  const std::int64_t stride = part_stride(width);
  const int parts = parallel_parts(n, std::max(width, kPointwiseGrain));
  const GridTable table(grids, width);
  std::vector<double> below(parts * stride), above(parts * stride);
  parallel_rows(n, width, parts, [&](std::int64_t part, std::int64_t from, std::int64_t to) {
    // The sums first: dx may be dy.
    if (d_min || d_max)
      range_gradient_rows(x, dy, from, to, width, table.row(), &below[part * stride], &above[part * stride]);
    if (dx) gradient_rows(x, dy, dx, from, to, width, table.row());
  });
  if (!d_min && !d_max) return;
  for (std::int64_t c = 0; c < channels; ++c) {
    double min_sum = 0, max_sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t i = c; i < width; i += channels) {
        min_sum += below[part * stride + i];
        max_sum += above[part * stride + i];
      }
    }
    if (d_min) d_min[c] = static_cast<float>(min_sum);
    if (d_max) d_max[c] = static_cast<float>(max_sum);
  }
}

bool min_max(const float* x, std::int64_t n, std::span<float> min, std::span<float> max) {
  if (min.empty()) return false;
  const std::int64_t channels = static_cast<std::int64_t>(min.size());
  const std::int64_t width = row_width(channels);
  const std::int64_t stride = part_stride(width);
  const int parts = parallel_parts(n, std::max(width, kPointwiseGrain));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> low(parts * stride, kInfinity), high(parts * stride, -kInfinity);
  std::vector<std::uint32_t> not_a_number(parts);
  parallel_rows(n, width, parts, [&](std::int64_t part, std::int64_t from, std::int64_t to) {
    not_a_number[part] = min_max_rows(x, from, to, width, &low[part * stride], &high[part * stride]);
  });
  std::fill(min.begin(), min.end(), kInfinity);
  std::fill(max.begin(), max.end(), -kInfinity);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t first = part * stride; first < part * stride + width; first += channels) {
      for (std::int64_t c = 0; c < channels; ++c) {
        min[c] = std::min(min[c], low[first + c]);
        max[c] = std::max(max[c], high[first + c]);
      }
    }
  }
  return std::any_of(not_a_number.begin(), not_a_number.end(), [](std::uint32_t found) { return found != 0; });
}

void copy_floats(const float* x, float* y, std::int64_t n) {
  if (x == y) return;
  parallel_for(n, kPointwiseGrain, [&](std::int64_t from, std::int64_t to) {
    std::memcpy(y + from, x + from, static_cast<std::size_t>(to - from) * sizeof(float));
  });
}

}  // namespace miniqat::quantize
