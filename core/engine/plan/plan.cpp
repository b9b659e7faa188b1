#include "core/engine/plan/plan.h"

#include "core/engine/plan/plan_addresses.h"
#include "core/engine/plan/plan_backward.h"
#include "core/engine/plan/plan_draft.h"
#include "core/engine/plan/plan_forward.h"
#include "core/engine/plan/plan_liveness.h"

namespace miniqat {

std::unique_ptr<Plan> compile_plan(const Graph& graph, const PlanRequest& request) {
  PlanDraft draft(graph, request);
  note_reads(draft);
  choose_packing(draft);
  lay_out_forward(draft);
  lay_out_backward(draft);
  assign_addresses(draft);
  return std::move(draft.plan);
}

}  // namespace miniqat
