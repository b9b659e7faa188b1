#pragma once

#include "core/graph/graph.h"
#include "quantize/affine.h"

namespace miniqat::quantize {

/// What a clamp (OpRole::kClamp) clamps to: Relu to [0, infinity], Relu6 to [0, 6], Clip to its attributes.
Range<float> clamp_bounds(const Op& clamp);

/// The range within `outer` that a clamp to `inner` leaves: [outer.min, outer.max] with each end clamped.
Range<float> limited(Range<float> outer, Range<float> inner);

}  // namespace miniqat::quantize
