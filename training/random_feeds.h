#pragma once

#include <cstdint>

#include "core/engine/session.h"

namespace miniqat::training {

/// Tensors for the placeholders that `fed` leaves out: float32 ones get standard normal numbers, int32 ones uniform
/// classes that every SoftmaxCrossEntropy reading them as labels has, zeros where there is no such reader. A pure
/// function of the seed and the placeholder's name and spec. Throws Error for a placeholder of any other type.
Feeds random_feeds(const Graph& graph, const Feeds& fed, std::uint64_t seed);

}  // namespace miniqat::training
