#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/kernels/fake_quant_kernel.h"
#include "quantize/affine.h"

namespace miniqat::bench {

/// A kernel with what keeps its functions there.
struct NamedKernel {
  std::string name;
  fake_quant_kernel functions;
  /// The shared library that it came from; null for one of this program.
  std::shared_ptr<void> library;
  /// The path of a plugin, as it was given.
  std::string file = {};
};

/// The kernel that every other one is measured beside: our own loops, under this name.
inline constexpr const char* kOurName = "miniqat";
NamedKernel our_kernel();

/// The kernels of bench/kernels/, by name. Throws Error for a name that is used twice, that an operation has, that
/// is empty or holds anything but letters, digits, _ and -.
std::vector<NamedKernel> registered_kernels();
/// The names of these kernels, good or not.
std::vector<std::string> registered_names();

/// The kernels of a shared library. Throws Error naming the file: it cannot be loaded, lacks
/// `miniqat_fake_quant_plugin`, is of another version, holds no kernels or ones that registered_kernels() would refuse;
/// or loading it or calling that function crashes (run_trial()).
std::vector<NamedKernel> load_plugin(const std::string& path);

/// Whether this processor can run it. Throws Error if the kernel's function crashes.
bool is_supported(const NamedKernel& kernel);

/// Throws Error for names that registered_kernels() refuses.
void require_good_names(const std::vector<NamedKernel>& kernels, const std::string& whose);

/// A grid under the names of fake_quant_plugin.h, and back.
inline fake_quant_grid plugin_grid(const quantize::Affine<float>& grid) {
  return {grid.scale, grid.zero_point, grid.quant_min, grid.quant_max, grid.nudged_min, grid.nudged_max};
}
inline quantize::Affine<float> affine_of(const fake_quant_grid& grid) {
  return {grid.scale, grid.zero_point, grid.quant_min, grid.quant_max, grid.nudged_min, grid.nudged_max};
}
inline std::vector<fake_quant_grid> plugin_grids(std::span<const quantize::Affine<float>> grids) {
  std::vector<fake_quant_grid> all;
  for (const quantize::Affine<float>& grid : grids) all.push_back(plugin_grid(grid));
  return all;
}

}  // namespace miniqat::bench
