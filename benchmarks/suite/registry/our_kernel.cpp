// Our own loops with the functions of a plugin: verified, cut and timed as any other kernel. They share a tensor
// between the threads by themselves.

#include "benchmarks/suite/registry/grids.h"
#include "benchmarks/suite/registry/kernel_registry.h"
#include "core/kernels/scratch.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::benchmarks {
namespace {

quantize::ChannelGrids row_of(const fake_quant_grid* grids, std::int64_t channels, ScratchScope& scope) {
  const auto affine = scope.take<quantize::Affine<float>>(static_cast<std::size_t>(channels));
  for (std::int64_t c = 0; c < channels; ++c) affine[c] = affine_of(grids[c]);
  return quantize::channel_grids(affine, scope);
}

void our_forward(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  ScratchScope scope;
  quantize::fake_quant_forward(x, y, n, row_of(grids, channels, scope), nullptr);
}

void our_forward_mask(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels,
                      void* mask) {
  ScratchScope scope;
  quantize::fake_quant_forward(x, y, n, row_of(grids, channels, scope), static_cast<std::uint32_t*>(mask));
}

void our_backward_mask(const float* dy, float* dx, std::int64_t n, const void* mask) {
  quantize::fake_quant_backward(dy, dx, n, static_cast<const std::uint32_t*>(mask));
}

int our_min_max(const float* x, std::int64_t n, std::int64_t channels, float* min, float* max) {
  return quantize::column_ranges(x, n, channels, min, max) ? 1 : 0;
}

void our_backward_learned(const float* x, const float* dy, float* dx, std::int64_t n, const fake_quant_grid* grids,
                          std::int64_t channels, fake_quant_sums* sums) {
  ScratchScope scope;
  const auto own = scope.take<quantize::RangeSums>(static_cast<std::size_t>(channels));
  quantize::fake_quant_backward(x, dy, n, row_of(grids, channels, scope), dx, own, true);
  for (std::int64_t c = 0; c < channels; ++c) sums[c] = {own[c].below, own[c].above, own[c].inside};
}

/// The number of threads is the whole program's.
void our_set_threads(std::int32_t) {}

}  // namespace

NamedKernel our_kernel() {
  return {kOurName,
          {.name = kOurName,
           .forward = our_forward,
           .forward_mask = our_forward_mask,
           .backward_mask = our_backward_mask,
           .min_max = our_min_max,
           .backward_learned = our_backward_learned,
           .set_threads = our_set_threads,
           .supported = nullptr},
          nullptr};
}

}  // namespace miniqat::benchmarks
