#pragma once

#include <vector>

#include "core/engine/plan/plan_selection.h"

namespace miniqat {

/// Puts every fusion that an op offers (FusesWithNext) in the place of its nodes. `nodes` are in order, producers
/// first, and so is the result.
std::vector<SelectedNode> fuse_nodes(std::vector<SelectedNode> nodes, const PlanRequest& request);

}  // namespace miniqat
