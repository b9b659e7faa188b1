#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"

namespace miniqat::layers {

/// y[r, c] = exp(x[r, c]) / sum over k of exp(x[r, k]), along the last axis. Input x [..., c] float32 (rank 1 or more);
/// output like x. Large values are safe: the row's maximum is subtracted first, which changes nothing else.
struct Softmax {
  static constexpr std::string_view kType = "Softmax";
  using Attributes = NoAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

Output softmax(Graph& graph, const std::string& name, Output x);

}  // namespace miniqat::layers
