#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/instruction_set.h"
#include "core/kernels/scratch.h"
#include "layers/kernels/column_statistics.h"
#include "layers/kernels/masks.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

// The fast loops of FakeQuant, in float32. Tensors are flat here: element i of n belongs to channel i % channels, one
// channel meaning per tensor. Results are the same bits for every instruction set and thread count. Nothing allocates
// once the threads' scratch memory has grown; ChannelGrids of 0 channels do nothing.

using layers::column_ranges;
using layers::kept_if;
using layers::kMaskBlock;
using layers::kMaskLanes;
using layers::mask_words;

/// The grids of a tensor's channels as the loops read them. Plain data to be passed around; the arrays belong to a
/// ScratchScope.
///
/// The integers are moved so that quant_min is 0, which leaves fewer arrays to read. The bits stay the same: an integer
/// less its zero point is exact, and nudged_min is -zero_point * scale, also for empty grids and for those of NaNs.
struct ChannelGrids {
  /// How far beyond `width` the arrays can be read.
  static constexpr std::int64_t kBeyond = 64;

  std::int64_t channels = 0;
  /// layers::row_width(channels)
  std::int64_t width = 0;
  /// Element i is for channel i % channels, up to width + kBeyond.
  const float* scale = nullptr;
  /// quant_min - zero_point
  const float* offset = nullptr;
  const float* nudged_max = nullptr;
};

/// Takes its memory from `scope`, and only there is it valid. The grids of one tensor have the same bits. No grids make
/// 0 channels, for which the loops do nothing.
ChannelGrids channel_grids(std::span<const Affine<float>> grids, ScratchScope& scope);

// Pieces of a tensor, on the calling thread, for loops over cache-sized tiles that do more than this. A piece starts at
// channel 0.

/// y = fake_quantize(x). y may be x.
void fake_quant_piece(const float* x, float* y, std::int64_t n, const ChannelGrids& grids);
/// y = fake_quantize(x) with one grid for all channels. y may be x.
void fake_quant_piece(const float* x, float* y, std::int64_t n, const Affine<float>& grid);

// Whole tensors, shared between the threads where that pays.

/// y = fake_quantize(x). y may be x. With `mask`, of mask_words(n) words, also writes down where the gradient passes.
void fake_quant_forward(const float* x, float* y, std::int64_t n, const ChannelGrids& grids, std::uint32_t* mask);
/// fake_quant_forward() with a grid for each channel (all of the same bits).
void fake_quant_forward(const float* x, float* y, std::int64_t n, std::span<const Affine<float>> grids,
                        std::uint32_t* mask);

/// dx = dy where the mask has a 1, else 0. dx may be dy.
void fake_quant_backward(const float* dy, float* dx, std::int64_t n, const std::uint32_t* mask);

/// dx without a mask, from x itself, and sums per channel, taken in double: none where `sums` is empty,
/// RangeSums::inside only if asked for. dx may be null, or dy. Inside a range that is not empty dx gets
/// pull * (x - fake_quantize(x)) in addition.
void fake_quant_backward(const float* x, const float* dy, std::int64_t n, const ChannelGrids& grids, float* dx,
                         std::span<RangeSums> sums, bool with_inside, float pull = 0);

/// y = x, nothing to do when they are the same.
void copy_floats(const float* x, float* y, std::int64_t n);

// Behind all these: the loops on one thread, as they were compiled for each instruction set. The tests run them side by
// side.

/// All give the same bits for every instruction set. x[0], y[0] and so on are at the start of a row of ChannelGrids,
/// except in forward_mask. Results may be written over the first argument.
struct FakeQuantLoops {
  /// y = fake_quantize(x): for one channel, whose numbers are the arrays' first, and for rows of channels.
  void (*forward_one)(const float* x, float* y, std::int64_t n, const ChannelGrids& grids);
  void (*forward_rows)(const float* x, float* y, std::int64_t n, const ChannelGrids& grids);
  /// y = fake_quantize(x), and the mask, at the start of a block. x[0] is at `place` in its row.
  void (*forward_mask)(const float* x, float* y, std::int64_t n, std::uint32_t* mask, const ChannelGrids& grids,
                       std::int64_t place);
  /// dx = dy where the mask has a 1, else 0.
  void (*masked)(const float* dy, float* dx, std::int64_t n, const std::uint32_t* mask);
  /// dx = dy where the gradient passes at x, else 0; unless dx is null. Adds dy to below[i] where x at place i of its
  /// row is less than the grid's minimum, to above[i] where it is more than the maximum; unless both are null. Adds
  /// dy * (fake_quantize(x) - x) to inside[i] anywhere else, unless that is null, which it is where the others are. An
  /// empty grid has nothing to add. With `pull`, dx gets pull * (x - fake_quantize(x)) in addition inside a range that
  /// is not empty.
  void (*gradient_rows)(const float* x, const float* dy, float* dx, std::int64_t n, const ChannelGrids& grids,
                        double* below, double* above, double* inside, float pull);
};

/// Outside x86-64 the same for every set. This CPU must be able to run it.
const FakeQuantLoops& fake_quant_loops(InstructionSet set);

}  // namespace miniqat::quantize
