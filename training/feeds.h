#pragma once

#include <cstdint>
#include <string>

#include "core/engine/session.h"
#include "datasets/dataset.h"

namespace miniqat::training {

/// Pictures from a data set for the placeholders that `fed` leaves out: a batch from number `first` on, the last
/// picture repeated where there are fewer, for the graph's input [n, h, w, c], and their labels for int32 placeholders
/// [n] that a SoftmaxCrossEntropy reads as labels. Throws Error for a graph without such an input and pictures of
/// another size, and for a number out of range. `source` names the graph.
Feeds picture_feeds(const Graph& graph, const Feeds& fed, const datasets::Dataset& pictures, std::int64_t first,
                    const std::string& source);

/// Tensors for the placeholders that `fed` leaves out: float32 ones get standard normal numbers, int32 ones uniform
/// classes that every SoftmaxCrossEntropy reading them as labels has, zeros where there is no such reader. A pure
/// function of the seed and the placeholder's name and spec. Throws Error for a placeholder of any other type.
Feeds random_feeds(const Graph& graph, const Feeds& fed, std::uint64_t seed);

}  // namespace miniqat::training
