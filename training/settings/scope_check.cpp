#include "training/settings/scope_check.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "quantize/quantization.h"
#include "quantize/rewrite/layer_patterns.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

void require_scope(const Graph& graph, const std::string& scope, const std::string& source) {
  const auto nodes = graph.nodes();
  if (std::ranges::any_of(nodes, [&](const Node* node) { return in_scope(node->name(), scope); })) return;
  std::set<std::string> scopes;
  for (const Node* node : nodes)
    for (std::string outer = scope_of(node->name()); !outer.empty() && scopes.insert(outer).second;)
      outer = scope_of(outer);
  const std::vector<std::string> known(scopes.begin(), scopes.end());
  throw UsageError(
      concat("--scope ", quote(scope), ": no node of ", source, " is in that scope", did_you_mean(scope, known)));
}

void require_quantizers(const Graph& graph, const std::string& scope, const std::string& model,
                        const std::string& advice) {
  if (!quantize::quantization_of(graph).is_float()) return;
  fail("nothing in ", model, " was quantized", scope.empty() ? "" : concat(", no layer is in scope ", quote(scope)),
       "; `miniqat rewrite --report` says why", advice);
}

}  // namespace miniqat::training
