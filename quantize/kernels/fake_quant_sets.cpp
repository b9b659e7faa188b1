#include "quantize/kernels/fake_quant_sets.h"

#include <algorithm>

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

}  // namespace

const FakeQuantLoops& fake_quant_loops([[maybe_unused]] InstructionSet set) {
#if MINIQAT_HAS_INSTRUCTION_SETS
  if (set == InstructionSet::kAvx512) return kAvx512;
  if (set == InstructionSet::kAvx2) return kAvx2;
#endif
  return kBaseline;
}

}  // namespace miniqat::quantize
