#include "core/kernels/finite.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "core/kernels/instruction_set.h"
#include "core/threads/parallel.h"

namespace miniqat {
namespace {

#define MINIQAT_LOOPS "core/kernels/finite_loops.h"
#include "core/kernels/per_instruction_set.h"

}  // namespace

bool is_finite(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat64)
    return std::ranges::all_of(tensor.values<double>(), [](double value) { return std::isfinite(value); });
  if (tensor.dtype() != DType::kFloat32) return true;
  const auto loop = MINIQAT_PICK(has_special);
  const auto* bits = static_cast<const std::uint32_t*>(tensor.raw());
  std::atomic<bool> special = false;
  parallel_for(tensor.elements(), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    if (loop(bits + begin, end - begin)) special.store(true, std::memory_order_relaxed);
  });
  return !special;
}

}  // namespace miniqat
