#pragma once

#include "quantize/fake_quant.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::quantize {

/// Makes the ops of this folder known to graph JSON. Idempotent.
void register_ops();

}  // namespace miniqat::quantize
