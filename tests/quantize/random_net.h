#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace miniqat::testing {

/// Ops of every type but the losses, on tensors of any shape drawn from all that is there: chains, branches, bypasses,
/// layers with and without batch norm, weights and statistics that are shared, partitioned or quantized already, in the
/// scopes "net" and "aux". Values stay moderate and denominators away from 0. User-made quantizers act on fixed or
/// learned ranges, or not before kNever steps.
Graph random_net(std::uint64_t seed);

/// Blocks of a layer, a bias or batch norm, and an activation, as people build them, with bypasses, branches, pools and
/// dense layers at the end, batch norms that are part of no layer, and layers read before their activation, all in the
/// scope "net": nothing that the rewrite could not quantize.
Graph well_formed_net(std::uint64_t seed);

/// The same with ten to thirteen channels behind a convolution: enough for integers and rounded gradients.
Graph wide_random_net(std::uint64_t seed);
Graph wide_well_formed_net(std::uint64_t seed);

constexpr std::int64_t kNever = std::int64_t{1} << 30;

}  // namespace miniqat::testing
