#pragma once

#include "core/graph/graph.h"

namespace miniqat::benchmarks {

/// `layers` times a 1x1 convolution, a batch norm and a Relu on images [1, 2, 2, 1], from "images" on: next to no
/// arithmetic, so that what is timed is the work on the graph.
Graph chain_of_layers(int layers);

/// The same convolutions, with batch norms spelled out in primitive ops on stored statistics.
Graph chain_of_spelled_out_layers(int layers);

}  // namespace miniqat::benchmarks
