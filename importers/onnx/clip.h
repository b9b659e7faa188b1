#pragma once

#include <optional>

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library.

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

}  // namespace miniqat::importers
