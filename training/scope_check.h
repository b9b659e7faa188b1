#pragma once

#include <string>

#include "core/graph/graph.h"

namespace miniqat::training {

/// Throws UsageError where no node of `graph`, which `source` names, is in the scope of --scope, with the scope that
/// was probably meant. "" is every scope.
void require_scope(const Graph& graph, const std::string& scope, const std::string& source);

}  // namespace miniqat::training
