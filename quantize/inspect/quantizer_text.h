#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

/// The special properties of a quantizer, in words: {"per channel", "symmetric", "narrow"} or some of these, in this
/// order.
std::vector<std::string> grid_words(const FakeQuantAttributes& attributes);

/// The bits and all of these in one line: "8 bits, last value, per channel, narrow, delay 100".
std::string quantizer_text(const FakeQuantAttributes& attributes);

/// Whether the node is a FakeQuant's min or max and nothing else: a Variable that is not trained or a Constant, which
/// says nothing that the quantizer does not say. False for a graph output.
bool is_range_only(const Graph& graph, const Node& node);

}  // namespace miniqat::quantize
