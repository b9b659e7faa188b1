#pragma once

#include "core/engine/plan/plan_draft.h"

namespace miniqat {

/// Writes the steps of forward and gives every output, saved and packed tensor a stretch of memory. Throws Error for an
/// op that wants to update something else than a Variable, or one that two ops update.
void lay_out_forward(PlanDraft& draft);

}  // namespace miniqat
