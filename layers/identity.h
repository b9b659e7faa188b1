#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y = x, of any shape and dtype, as a view: it costs nothing.
struct Identity {
  static constexpr std::string_view kType = "Identity";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output identity(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
