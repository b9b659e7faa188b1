#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op_queries.h"

namespace miniqat {

/// In a profile, behind the type of a node that multiplies the integers of its inputs (Arithmetic::kInteger).
inline constexpr std::string_view kOfIntegers = " of integers";

/// What a plan is compiled for.
struct PlanRequest {
  std::vector<Output> fetches = {};
  /// Differentiate (the sum of) this tensor with respect to the targets.
  std::optional<Output> gradients_of = {};
  std::vector<Output> gradient_targets = {};
  bool training = false;
  /// The value of the quantization step counter; only which delays it has passed matters.
  std::int64_t quantization_step = 0;
  Backend backend = Backend::kFast;
  /// For the fast backend.
  Arithmetic arithmetic = Arithmetic::kSimulated;
  FactorRounding rounding = FactorRounding::kNone;
  /// The type of the graph's float32 tensors in the plan: kFloat64 is for the reference backend.
  DType precision = DType::kFloat32;
  /// The placeholders that are fed bytes in the place of float32 numbers; for the fast backend.
  std::vector<Output> coded = {};
  /// The feeds are a slice of a larger batch: forward leaves what it observes (ForwardContext::observed).
  bool slice = false;
};

/// The steps at which some op of a graph begins to do something else (OpTraits::delays), each once, in order.
class Delays {
 public:
  explicit Delays(const Graph& graph);
  Delays() = default;

  bool empty() const { return steps_.empty(); }
  /// The number of passed delays. Requests that are equal in it and in all else may share a plan.
  std::int64_t passed(std::int64_t quantization_step) const;

 private:
  std::vector<std::int64_t> steps_;
};

/// Bytes of a plan's own memory (variables and feeds not included).
struct PlanMemory {
  /// The arena: all activations, gradients and saved tensors, overlaid by liveness.
  std::size_t arena = 0;
  /// The size of all these if none shared memory with another.
  std::size_t unshared = 0;
  /// Nodes that run, and the steps they run in: fused nodes are one.
  int nodes = 0;
  int steps = 0;
  /// Nodes of the graph that this request does not need.
  int dropped_nodes = 0;

  bool operator==(const PlanMemory&) const = default;
};

/// A layer of a plan, for people.
struct PlannedLayer {
  const Node* node = nullptr;
  std::int64_t multiply_adds = 0;
  /// Whether forward multiplies the integers of its inputs, and why not (of Arithmetic::kInteger).
  bool on_integers = false;
  std::string why_float;
  /// Factors of its products are rounded (FactorRounding).
  bool rounds = false;
};

/// The layers of a request's plan, in their order. Compiles none. Throws as compile_plan() does.
std::vector<PlannedLayer> planned_layers(const Graph& graph, const PlanRequest& request);

}  // namespace miniqat
