#include "quantize/clamp_bounds.h"

#include <algorithm>
#include <limits>

#include "core/graph/op.h"
#include "layers/clip.h"
#include "layers/relu.h"

namespace miniqat::quantize {

Range<float> clamp_bounds(const Op& clamp) {
  if (const auto* clip = clamp.as<layers::Clip>())
    return {static_cast<float>(clip->low), static_cast<float>(clip->high)};
  return {0, clamp.as<layers::Relu6>() ? 6 : std::numeric_limits<float>::infinity()};
}

Range<float> limited(Range<float> outer, Range<float> inner) {
  return {std::clamp(outer.min, inner.min, inner.max), std::clamp(outer.max, inner.min, inner.max)};
}

}  // namespace miniqat::quantize
