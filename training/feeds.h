#pragma once

#include <cstdint>
#include <string>

#include "core/engine/session.h"
#include "datasets/dataset.h"

namespace miniqat::training {

/// Pictures from a data set for the placeholders that `fed` leaves out: a batch from number `first` on, the last
/// picture repeated where there are fewer, for the graph's input [n, h, w, c], and what a loss compares with: their
/// labels for int32 placeholders [n] taken as classes, their targets for float32 ones [n, k]. Throws Error for a graph
/// without such an input and pictures of another size, and for a number out of range. `source` names the graph.
Feeds picture_feeds(const Graph& graph, const Feeds& fed, const datasets::Dataset& pictures, std::int64_t first,
                    const std::string& source);

/// Tensors for the placeholders that `fed` leaves out: float32 ones get standard normal numbers, or zeros and ones
/// where a loss takes them as probabilities; int32 ones uniform classes that every loss taking them as targets has,
/// zeros where there is no such loss. A pure function of the seed, the placeholder's name and spec, and these losses.
/// Throws Error for a placeholder of any other type.
Feeds random_feeds(const Graph& graph, const Feeds& fed, std::uint64_t seed);

}  // namespace miniqat::training
