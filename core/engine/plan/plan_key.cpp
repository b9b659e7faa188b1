#include "core/engine/delays.h"
#include "core/engine/plan/plan.h"
#include "core/engine/plan/plan_selection.h"
#include "core/error.h"

namespace miniqat {

std::string plan_key(const Graph& graph, const PlanRequest& request) {
  std::string text = request.training ? "training" : "inference";
  if (request.slice) text += ",slice";
  for (const Output& fetch : request.fetches) text += " " + fetch.name();
  // No node's name holds a comma, so that nothing here can be taken for a fetch.
  if (request.gradients_of) text += ",d " + request.gradients_of->name();
  for (const Output& target : request.gradient_targets) text += ",/ " + target.name();
  return text + concat(",after ", Delays(graph).passed(request.quantization_step), " delays");
}

}  // namespace miniqat
