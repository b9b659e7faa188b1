#pragma once

#include <optional>

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library: ops that exporters write as several nodes.

/// What a Clip clips to; infinite where it has no bound.
struct Bounds {
  double low;
  double high;
};

/// None if a bound is not known yet, or is not one float.
std::optional<Bounds> bounds_of(const Translation& t, const OnnxNode& clip);

/// The Clip to [low, 6], with a low of at most 0, that is the only reader of this Relu: both are a Relu6. Null if there
/// is none such. PyTorch writes relu6() so.
const pb::Node* clip_to_6_behind(const Translation& t, const OnnxNode& relu);

/// x * relu6(x + 3) / 6 as Add, Clip (or Relu and Clip), Mul and Div (or Mul by 1/6) write it, the last two in either
/// order, if `add` begins it and nothing else reads its parts. All constants must be known. Then notes the parts, and
/// the last node as the one that becomes a HardSwish.
bool begins_hard_swish(Translation& t, const OnnxNode& add);

}  // namespace miniqat::importers
