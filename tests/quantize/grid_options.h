#pragma once

#include <vector>

#include "quantize/affine.h"

namespace miniqat::testing {

/// Every kind of grid, at 2 to 16 bits.
inline std::vector<quantize::GridOptions> all_options() {
  std::vector<quantize::GridOptions> options;
  for (int bits = 2; bits <= 16; ++bits)
    for (bool narrow : {false, true})
      for (bool symmetric : {false, true})
        for (bool power_of_two : {false, true}) options.push_back({bits, narrow, symmetric, power_of_two});
  return options;
}

}  // namespace miniqat::testing
