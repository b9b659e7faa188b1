#pragma once

#include "importers/onnx/translation.h"

namespace miniqat::importers {

// Not for users of the library.

/// x * relu6(x + 3) / 6 as Add, Clip (or Relu and Clip), Mul and Div (or Mul by 1/6) write it, the last two in either
/// order, if `add` begins it and nothing else reads its parts. All constants must be known. Then notes the parts, and
/// the last node as the one that becomes a HardSwish.
bool begins_hard_swish(Translation& t, const OnnxNode& add);

}  // namespace miniqat::importers
