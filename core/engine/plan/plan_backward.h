#pragma once

#include "core/engine/plan/plan_draft.h"

namespace miniqat {

/// Writes the steps of backward, last node first, and gives every gradient a stretch of memory in that order.
void lay_out_backward(PlanDraft& draft);

}  // namespace miniqat
