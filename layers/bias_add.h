#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y[..., c] = x[..., c] + bias[c]. Inputs x [..., c] float32 (rank 1 or more), bias [c]; output like x.
/// Throws Error while building when the bias has another length than x's last axis.
struct BiasAdd {
  static constexpr std::string_view kType = "BiasAdd";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output bias_add(Graph& graph, const std::string& name, Output x, Output bias);

}  // namespace miniqat::layers
