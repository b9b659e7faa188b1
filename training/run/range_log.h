#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/graph/graph.h"
#include "core/safetensors.h"

namespace miniqat::training {

/// {"conv1/weights_quant": [-0.31, 0.42]}: the range of each quantizer of a graph with these variables, of one with a
/// range for each channel the lowest and the highest end. Each number is the shortest that rounds to the float32.
nlohmann::ordered_json ranges_json(const Graph& graph, const NamedTensors& variables);

}  // namespace miniqat::training
