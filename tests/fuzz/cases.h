#pragma once

#include <cstdint>
#include <string>

#include "core/tensors/random.h"
#include "tests/fuzz/graph_case.h"

namespace miniqat::fuzz {

// Each a pure function of its seed.

/// A convolution of some kind: filters of 1, 3, 5 or unequal sides, strides, dilations, either padding, 1 to 67
/// channels.
GraphCase convolution_case(std::uint64_t seed);

/// Any op on random attributes and shapes, or several that the plan runs as one.
GraphCase op_case(std::uint64_t seed);

/// A random net (tests/quantize/random_net.h), rewritten for training by random options, for some steps before or after
/// quantization begins and batch norms freeze; or for evaluation.
GraphCase net_case(std::uint64_t seed);

/// Throws Error that names a registered op which op_case never makes.
void require_all_ops();

}  // namespace miniqat::fuzz
