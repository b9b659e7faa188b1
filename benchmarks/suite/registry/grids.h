#pragma once

#include <span>
#include <vector>

#include "benchmarks/kernels/fake_quant_plugin.h"
#include "quantize/affine.h"

namespace miniqat::benchmarks {

/// The same numbers under the names of fake_quant_plugin.h, and back.
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

}  // namespace miniqat::benchmarks
