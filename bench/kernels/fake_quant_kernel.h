#pragma once

#include <cstdint>
#include <string>

#include "bench/kernels/fake_quant_plugin.h"

namespace miniqat::bench {

/// y = fake_quantize(x); fake_quant_plugin.h has the whole contract.
using ForwardFunction = void (*)(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids,
                                 std::int64_t channels);

/// Makes a kernel of one's own known to `miniqat bench --kernel NAME`, from a file of this folder (docs/own-kernel.md):
///
///   const bool registered = register_fake_quant_kernel("my_kernel", forward);
///
/// Returns true. It runs before main(): what is wrong with the name is said when the kernels are asked for.
bool register_fake_quant_kernel(const std::string& name, ForwardFunction forward);

/// Registers a kernel with more functions than forward. `kernel` is copied; kernel.name must stay valid.
bool register_fake_quant_kernel(const fake_quant_kernel& kernel);

}  // namespace miniqat::bench
