#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/losses.h"
#include "core/graph/op.h"
#include "core/graph/op_queries.h"
#include "core/text/error.h"

namespace miniqat {

// What only some ops do: an op inherits from Op (core/graph/op.h) and from these. The functions of
// core/graph/op_queries.h ask any op, and answer for one that does no such thing. What an op merely has (state, delays)
// is data: OpTraits.

/// An op that observes: what it stores in a training step (updates and state) follows from what it observes in its
/// tensors. Of a batch that is computed in slices, the observations of all slices together are stored once; forward
/// then stages provisional values, from its slice alone.
class ObservesBatch {
 public:
  /// How many statistics forward leaves in ForwardContext::observed; 0 where the phase observes nothing.
  virtual std::size_t observations(std::span<const TensorSpec> inputs, const Phase& phase) const = 0;
  /// Stages updates and state as that backend's forward does, from the statistics in `context.observed`. The staged
  /// tensors hold the current values; inputs and outputs may hold anything.
  virtual void store_observed(const ForwardContext& context, Backend backend) const = 0;
  /// Whether a training run in this phase updates this one of OpTraits::updated_inputs.
  virtual bool updates(int /*input*/, const Phase& /*phase*/) const { return true; }

 protected:
  ~ObservesBatch() = default;
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

/// Output 0 lies on a grid, so that bytes give the same bits again: a plan may use a large output's memory for other
/// things until backward reads it, and ops may compute with the bytes (ReadsPacked).
class PacksOutput {
 public:
  /// The form of the bytes that forward leaves in ForwardContext::packed; none if there is none in this phase.
  virtual std::optional<PackedForm> packed_output(std::span<const TensorSpec> inputs, const Phase& phase) const = 0;

 protected:
  ~PacksOutput() = default;
};

/// Output 0 lies on the grid of input 0, the only one: where somebody computes with its bytes, forward makes them of
/// those of the input (ForwardContext::packed_inputs).
class PassesPacked {
 public:
  /// The form of output 0, of an input in `form` with one grid.
  virtual PackedForm passed_form(std::span<const TensorSpec> inputs, const PackedForm& form) const = 0;

 protected:
  ~PassesPacked() = default;
};

/// An op that can compute with integers (Arithmetic::kInteger) and with rounded factors (FactorRounding) of its inputs.
class ReadsPacked {
 public:
  /// Why forward is not to read all its inputs packed in these forms (ForwardContext::packed_inputs); "" if it is.
  /// Without forms, the reasons that any forms would leave.
  virtual std::string why_not_packed(std::span<const TensorSpec> inputs, std::span<const PackedForm> forms) const = 0;
  /// Whether large products of rounded factors are faster, where inputs are float32.
  virtual bool rounds_factors(std::span<const TensorSpec> inputs) const = 0;
  /// If it reads them packed: whether backward is to read them, too, and to round the output's gradient so.
  virtual bool has_packed_gradients(std::span<const TensorSpec> inputs, std::span<const PackedForm> forms,
                                    FactorRounding rounding) const = 0;

 protected:
  ~ReadsPacked() = default;
};

/// An op that can spare work in some phase. Only the fast backend takes shortcuts; the reference backend computes every
/// node as the graph has it.
class TakesShortcuts {
 public:
  /// The shortcuts of node `self` of a graph.
  virtual std::vector<Shortcut> shortcuts(const Node& self, const Phase& phase) const = 0;

 protected:
  ~TakesShortcuts() = default;
};

/// Several nodes that the fast backend runs as one op. The tensors between them are never computed.
struct Fusion {
  /// Declares traits, saved tensors and state as any op does, by position in `inputs` and `outputs`.
  std::shared_ptr<const Op> op;
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  /// The nodes, producers first. The fused op runs in the place of the last.
  std::vector<const Node*> nodes;
  /// The one of them that names the op's state, its random numbers and its errors.
  const Node* named_after = nullptr;
};

/// Questions of an op about the nodes around it, while it looks for others to fuse with.
class FusionScope {
 public:
  virtual ~FusionScope() = default;
  /// The node's inputs in this plan, shortcuts taken.
  virtual std::span<const Output> inputs(const Node& node) const = 0;
  /// The node that takes this tensor as input 0 or 1 and is the only one that reads it in any way; null when there is
  /// none such, or when the node is part of another fusion already.
  virtual const Node* only_reader(Output output) const = 0;
  /// Whether a node, a fetch or the gradient's start takes it.
  virtual bool is_read(Output output) const = 0;
  /// Whether the plan has gradients.
  virtual bool differentiates() const = 0;
};

/// An op that exists in a plan only: no graph holds it, so there are no attributes and there is nothing to specify.
class FusedOp : public Op {
 public:
  void reference_forward(const ForwardContext&) const final { fail("the reference backend runs no fused op"); }
};

/// An op that can run as one with nodes behind it. Only the fast backend fuses.
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
  /// The multiply-adds of one forward.
  virtual std::int64_t multiply_adds(std::span<const TensorSpec> inputs) const = 0;

 protected:
  ~MultipliesAndAdds() = default;
};

/// A loss: output 0 is one number, the mean over a batch of how far its predictions are from their targets, so that the
/// mean of the slices of a batch is that of the batch. The targets get no gradient.
class MeasuresLoss {
 public:
  virtual LossInputs loss_inputs() const = 0;

 protected:
  ~MeasuresLoss() = default;
};

/// The op as one of these; null when it is none.
template <class Interface>
const Interface* as(const Op& op) {
  return dynamic_cast<const Interface*>(&op);
}

}  // namespace miniqat
