#include "integer/kernels/product.h"

#include <utility>
#include <vector>

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
  static const std::vector<ProductKernel> all = MINIQAT_KERNELS(MINIQAT_PRODUCT_KERNEL);
  return runnable_kernels(std::span(all));
}

}  // namespace miniqat::integer
