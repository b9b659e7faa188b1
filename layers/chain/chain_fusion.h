#pragma once

#include <optional>

#include "core/graph/fusion.h"

namespace miniqat::layers {

/// The longest chain (chain.h) that begins with `self`, of at least two ops or of one that gains by it: what Op::fuse
/// gives for every op that a chain may begin with.
std::optional<Fusion> fuse_chain(const Node& self, const FusionScope& scope);

}  // namespace miniqat::layers
