#include "integer/kernels/product.h"

#include <array>
#include <utility>

#include "core/kernels/instruction_set.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace miniqat::integer {
namespace {

#define MINIQAT_WITH_VNNI
#define MINIQAT_LOOPS "integer/kernels/product_loops.h"
#include "core/kernels/per_instruction_set.h"

#define MINIQAT_PRODUCT_KERNEL(set)                                                                     \
  ProductKernel {                                                                                       \
    .name = #set, .shape = {set::kLanes, set::kLanes * set::kPanelVectors}, .multiply = &set::multiply, \
    .sum_windows = &set::sum_windows                                                                    \
  }

}  // namespace

std::span<const ProductKernel> product_kernels() {
#if MINIQAT_HAS_INSTRUCTION_SETS
  static const std::array<ProductKernel, 4> all = {MINIQAT_PRODUCT_KERNEL(avx512vnni), MINIQAT_PRODUCT_KERNEL(avx512),
                                                   MINIQAT_PRODUCT_KERNEL(avx2), MINIQAT_PRODUCT_KERNEL(baseline)};
  static const std::size_t first = [] {
    if (instruction_set() == InstructionSet::kBaseline) return 3;
    if (instruction_set() == InstructionSet::kAvx2) return 2;
    return __builtin_cpu_supports("avx512vnni") ? 0 : 1;
  }();
  return std::span(all).subspan(first);
#else
  static const std::array<ProductKernel, 1> all = {MINIQAT_PRODUCT_KERNEL(baseline)};
  return all;
#endif
}

}  // namespace miniqat::integer
