#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

struct MeanAttributes {
  /// Which axes to average over; negative ones count from the end; none means all.
  std::vector<std::int64_t> axes;
  /// Keep the axes with extent 1 instead of dropping them.
  bool keep_dims = false;

  void visit(AttributeVisitor& visitor) {
    visitor.field("axes", axes);
    visitor.field("keep_dims", keep_dims);
  }
};

/// The mean of x, float32, over some of its axes: [n, h, w, c] over {1, 2} gives [n, c]. Throws Error while building
/// for axes that x does not have or that are named twice, and for a mean over no elements.
struct Mean {
  static constexpr std::string_view kType = "Mean";
  using Attributes = MeanAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output mean(Graph& graph, const std::string& name, Output x, const MeanAttributes& attributes = {}) {
  return graph.add<Mean>(name, {x}, attributes);
}

}  // namespace miniqat::layers
