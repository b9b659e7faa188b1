#pragma once

#include "quantize/batch_norm_fold.h"
#include "quantize/fake_quant.h"
#include "quantize/rewrite.h"

namespace miniqat::quantize {

/// Makes the ops of this folder known to graph JSON. Idempotent.
void register_ops();

}  // namespace miniqat::quantize
