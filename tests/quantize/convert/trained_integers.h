#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::testing {

/// A convolution with stride 1 and a bias, in its scope: size x size pixels, so many output channels.
Output conv_bias(Graph& graph, const std::string& scope, Output x, std::int64_t size, std::int64_t channels);

/// Trains a float graph for some steps with 8 and with 4 bits, with ranges per tensor and per channel, as `options` say
/// otherwise, and converts it.
/// Expects the integers to be those of the simulation but for rounding, and the fast engine and the exported C to give
/// the integers of the reference loops.
void expect_trained_integers(const Graph& graph, quantize::RewriteOptions options = {});

}  // namespace miniqat::testing
