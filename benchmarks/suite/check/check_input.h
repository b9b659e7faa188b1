#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/kernels/fake_quant_plugin.h"
#include "quantize/affine.h"

namespace miniqat::benchmarks {

/// One tensor on which a kernel is compared with the reference.
struct CheckCase {
  quantize::GridOptions options;
  std::int64_t channels = 1;
  std::int64_t n = 0;

  /// "4 bits, narrow range, 3 channels, 17 elements".
  std::string text() const;
};

/// All that kernel_check.h promises.
std::vector<CheckCase> check_cases();

/// Its grids and numbers, the same at every call.
struct CheckInput {
  explicit CheckInput(const CheckCase& what);

  std::vector<quantize::Affine<float>> grids;
  std::vector<fake_quant_grid> plugin_grids;
  std::vector<float> x;
  /// Finite.
  std::vector<float> dy;
};

}  // namespace miniqat::benchmarks
