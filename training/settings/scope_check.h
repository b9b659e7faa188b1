#pragma once

#include <string>

#include "core/graph/graph.h"

namespace miniqat::training {

/// Throws UsageError where no node of `graph`, which `source` names, is in the scope of --scope, with the scope that
/// was probably meant. "" is every scope.
void require_scope(const Graph& graph, const std::string& scope, const std::string& source);

/// Throws Error where `graph`, rewritten from `model` in that scope, has no quantizer: nobody who asks for quantization
/// wants a float network under its name. `advice` ends the message.
void require_quantizers(const Graph& graph, const std::string& scope, const std::string& model,
                        const std::string& advice = "");

}  // namespace miniqat::training
