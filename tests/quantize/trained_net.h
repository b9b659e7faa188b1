#pragma once

#include <cstdint>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "integer/arithmetic.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::testing {

/// What a data set of pictures brings along.
constexpr integer::Grid kPictures = {.scale = 1.0f / 64, .zero_point = 128, .bits = 8};

/// An evaluation graph and variables that fit it, ranges observed or learned.
struct TrainedNet {
  Graph evaluation;
  NamedTensors variables;
};

/// Rewrites a float graph of one output for training, runs some training steps on random pictures, in which batch norms
/// and quantizers see data and weights drift, and makes the evaluation graph.
TrainedNet train_briefly(const Graph& graph, const quantize::RewriteOptions& options, std::uint64_t seed = 1);

}  // namespace miniqat::testing
