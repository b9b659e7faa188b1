#pragma once

#include "core/engine/plan/plan_draft.h"

namespace miniqat {

/// Notes the first and last steps that read each tensor.
void note_reads(PlanDraft& draft);

/// Outputs that rest between their last use in forward and their first in backward, and that their op can pack, get a
/// second place where they are unpacked. (In training only: there a NaN makes the whole tensor NaN, of which nothing is
/// lost. Bytes have no NaN.)
void choose_packing(PlanDraft& draft);

}  // namespace miniqat
