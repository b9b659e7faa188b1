#pragma once

#include "core/engine/plan/plan_draft.h"

namespace miniqat {

/// Lays out the arena and hands every tensor its address; then the steps of backward learn where those of forward are,
/// and what has to be unpacked before them. Throws Error for a graph that would take more memory than there can be.
void assign_addresses(PlanDraft& draft);

}  // namespace miniqat
