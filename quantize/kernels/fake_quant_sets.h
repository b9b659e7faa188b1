#pragma once

#include <cstdint>

#include "core/kernels/instruction_set.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::quantize {

// Behind fake_quant_kernels.h: the loops on one thread, as they were compiled for each instruction set. The tests run
// them side by side.

/// All give the same bits for every instruction set. x[0], y[0] and so on are at the start of a row of ChannelGrids,
/// except in forward_mask. Results may be written over the first argument.
struct FakeQuantLoops {
  /// y = fake_quantize(x): for one channel, whose numbers are the arrays' first, and for rows of channels.
  void (*forward_one)(const float* x, float* y, std::int64_t n, const ChannelGrids& grids);
  void (*forward_rows)(const float* x, float* y, std::int64_t n, const ChannelGrids& grids);
  /// The same, and the mask, at the start of a block. x[0] is at `place` in its row.
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
