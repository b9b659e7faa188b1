#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"

namespace miniqat::training {

/// {"conv1/weights_quant": [-0.31, 0.42]}: the range of each quantizer of a graph with these variables, of one with a
/// range for each channel the lowest and the highest end. Each number is the shortest that rounds to the float32.
nlohmann::ordered_json ranges_json(const Graph& graph, const NamedTensors& variables);

/// Whether the line-th line about a step of training, counted from 1, has the ranges: the first twenty, then every
/// second up to the fortieth, every fourth up to the eightieth and so on. It does not depend on the length of the run.
bool has_ranges(std::int64_t line);

}  // namespace miniqat::training
