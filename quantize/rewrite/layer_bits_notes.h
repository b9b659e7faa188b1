#pragma once

#include <string>
#include <vector>

#include "quantize/rewrite/layer_patterns.h"
#include "quantize/rewrite/rewrite.h"
#include "quantize/rewrite/verdicts.h"

namespace miniqat::quantize {

/// The requests of options.layer_bits without effect, in a graph that has its quantizers. There is a text for every
/// pattern that decides about no layer, with the reason, and for every tensor that several layers would have quantized
/// differently.
std::vector<std::string> notes_on_layer_bits(const std::vector<LayerSkip>& skips, const Verdicts& verdicts,
                                             const RewriteOptions& options);

}  // namespace miniqat::quantize
