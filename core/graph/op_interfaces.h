#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/op_queries.h"

namespace miniqat {

struct Fusion;
class FusionScope;
struct Shortcut;

// Optional interfaces of ops: an op inherits from Op (core/graph/op.h) and from these. The functions of
// core/graph/op_queries.h ask any op, and answer for one that gives no such thing.

/// Its fast forward leaves tensors (masks, workspaces) for its fast backward: ForwardContext::saved.
class SavesForBackward {
 public:
  /// For these input shapes.
  virtual std::vector<TensorSpec> saved(std::span<const TensorSpec> inputs) const = 0;

 protected:
  ~SavesForBackward() = default;
};

/// It keeps values of its own from step to step: ForwardContext::state.
class KeepsState {
 public:
  virtual std::vector<OpState> state() const = 0;

 protected:
  ~KeepsState() = default;
};

/// What it stores in a training step (updates and state) follows from what it observes in its tensors. Of a batch that
/// is computed in slices, the observations of all slices together are stored once; forward then stages provisional
/// values, from its slice alone.
class ObservesBatch {
 public:
  /// How many statistics forward leaves in ForwardContext::observed; 0 where the phase observes nothing.
  virtual std::size_t observations(std::span<const TensorSpec> inputs, const Phase& phase) const = 0;
  /// Stages updates and state as forward does, from the statistics in `context.observed`. The staged tensors hold the
  /// current values; inputs and outputs may hold anything.
  virtual void store_observed(const ForwardContext& context) const = 0;

 protected:
  ~ObservesBatch() = default;
};

/// It does something else from some value of Phase::quantization_step on.
class ChangesLater {
 public:
  /// These values, in any order.
  virtual std::vector<std::int64_t> delays() const = 0;
  /// Whether a training run in this phase updates this one of OpTraits::updated_inputs.
  virtual bool updates(int /*input*/, const Phase& /*phase*/) const { return true; }

 protected:
  ~ChangesLater() = default;
};

/// In some runs its work makes no sense.
class RefusesRuns {
 public:
  /// Throws Error that states the reason, if a run in this phase with inputs of these shapes makes none. The plan puts
  /// type and node name before it.
  virtual void check_run(std::span<const TensorSpec> inputs, const Phase& phase) const = 0;

 protected:
  ~RefusesRuns() = default;
};

/// Some of its inputs take no numbers below 0: variances.
class TakesVariances {
 public:
  virtual std::vector<int> variance_inputs() const = 0;

 protected:
  ~TakesVariances() = default;
};

/// Output 0 has a smaller form (numbers on a grid as bytes, say) that gives the same bits again: a plan may use a large
/// output's memory for other things until backward reads it.
class PacksOutput {
 public:
  /// The shape and type of the small form; none if there is none in this phase.
  virtual std::optional<TensorSpec> packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const = 0;
  /// Writes output 0 again, from what forward left in ForwardContext::packed. Inputs may hold anything by now.
  virtual void unpack(const ForwardContext& context) const = 0;

 protected:
  ~PacksOutput() = default;
};

/// It can spare work in some phase. Only the fast backend takes shortcuts; the reference backend computes every node as
/// the graph has it.
class TakesShortcuts {
 public:
  /// As node `self` of a graph.
  virtual std::vector<Shortcut> shortcuts(const Node& self, const Phase& phase) const = 0;

 protected:
  ~TakesShortcuts() = default;
};

/// It can be run as one with nodes behind it. Only the fast backend fuses.
class FusesWithNext {
 public:
  /// The nodes, of which node `self` is the first.
  virtual std::optional<Fusion> fuse(const Node& self, const FusionScope& scope) const = 0;

 protected:
  ~FusesWithNext() = default;
};

/// A layer, whose work is counted in multiply-adds.
class MultipliesAndAdds {
 public:
  /// Of one forward.
  virtual std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const = 0;

 protected:
  ~MultipliesAndAdds() = default;
};

/// The op as one of these; null when it is none.
template <class Interface>
const Interface* as(const Op& op) {
  return dynamic_cast<const Interface*>(&op);
}

}  // namespace miniqat
