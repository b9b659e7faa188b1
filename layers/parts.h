#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::layers {

// Slice, Pad and Concat: parts of tensors.

/// What becomes of one axis: number i of the result is number start + i * step of x.
struct Cut {
  std::int64_t start = 0;
  std::int64_t step = 1;
};

/// Lists of one length: of axis axes[i] the numbers starts[i], starts[i] + steps[i], ... before ends[i] are kept. All
/// of any other axis.
struct SliceAttributes {
  /// Different ones; each counts from the end when negative.
  std::vector<std::int64_t> axes = {};
  /// In [0, extent).
  std::vector<std::int64_t> starts = {};
  /// In (start, extent].
  std::vector<std::int64_t> ends = {};
  /// 1 or more; all 1 when empty.
  std::vector<std::int64_t> steps = {};

  void visit(AttributeVisitor& visitor) {
    visitor.field("axes", axes);
    visitor.field("starts", starts);
    visitor.field("ends", ends);
    visitor.field("steps", steps);
  }
  /// One for each axis of a tensor of that rank, which has the axes.
  std::array<Cut, Shape::kMaxRank> cuts(int rank) const;
};

/// A part of a float32 tensor of any shape. Throws Error with the shape while building when the attributes do not fit
/// it.
struct Slice {
  static constexpr std::string_view kType = "Slice";
  using Attributes = SliceAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output slice(Graph& graph, const std::string& name, Output x, const SliceAttributes& attributes) {
  return graph.add<Slice>(name, {x}, attributes);
}

struct PadAttributes {
  /// [before, after] for every axis of the input, none negative.
  std::vector<std::array<std::int64_t, 2>> paddings;

  void visit(AttributeVisitor& visitor) { visitor.field("paddings", paddings); }
};

/// Surrounds x, float32, with zeros: extent e of an axis becomes before + e + after.
struct Pad {
  static constexpr std::string_view kType = "Pad";
  using Attributes = PadAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output pad(Graph& graph, const std::string& name, Output x, const PadAttributes& attributes) {
  return graph.add<Pad>(name, {x}, attributes);
}

struct ConcatAttributes {
  /// Counts from the end when negative.
  std::int64_t axis = -1;

  void visit(AttributeVisitor& visitor) { visitor.field("axis", axis); }
};

/// Joins one or more float32 tensors along an axis; all other extents must agree. The output's extent along the axis is
/// the sum of the inputs'. Throws Error with both shapes while building when they don't fit.
struct Concat {
  static constexpr std::string_view kType = "Concat";
  using Attributes = ConcatAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

inline Output concat(Graph& graph, const std::string& name, std::vector<Output> inputs,
                     const ConcatAttributes& attributes = {}) {
  return graph.add<Concat>(name, std::move(inputs), attributes);
}

}  // namespace miniqat::layers
