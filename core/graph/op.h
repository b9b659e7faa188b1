#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/attributes.h"
#include "core/graph/op_queries.h"
#include "core/tensors/packed.h"
#include "core/tensors/shard_statistic.h"
#include "core/tensors/tensor.h"
#include "core/text/error.h"

namespace miniqat {

class Node;

/// The progress of a run, as far as ops need it.
struct Phase {
  /// In a training step, or a run that acts like one: batch statistics are used, observers observe, dropout drops.
  bool training = false;
  /// A counter of training steps (Session::quantization_step), for ops to compare with their delays (OpTraits::delays):
  /// a plan is compiled for one value of it and serves for all values up to the next delay.
  std::int64_t quantization_step = 0;
};

/// What others have to know of an op: the freedom of the plan with its memory, the needs of backward, and what it keeps
/// or changes from step to step. Plain data, read when a plan is compiled.
struct OpTraits {
  /// Output 0 is input 0 under another shape: the plan lets both share memory, and forward has nothing to do when
  /// input and output have the same address (else it copies). The same holds for the gradients.
  bool view = false;
  /// forward may write output 0 over input 0 (same bytes).
  bool forward_in_place = false;
  /// backward may write d_input 0 over d_output 0 (same bytes).
  bool backward_in_place = false;
  /// The input i whose gradient backward may write over input i, because it reads that one only before; -1 for none.
  int gradient_over_input = -1;
  /// Inputs and outputs whose values the fast backward reads. (The reference backward may read all of them.)
  std::vector<int> backward_inputs = {};
  std::vector<int> backward_outputs = {};
  /// Inputs for which there is no gradient (labels, ranges of a quantizer that observes, ...).
  std::vector<int> no_gradient = {};
  /// Inputs that must come straight from a Variable and that forward updates while training (moving statistics).
  std::vector<int> updated_inputs = {};
  /// Updated inputs start anew where a checkpoint has them in another shape: training soon finds them again.
  bool updates_start_anew = false;
  /// Outputs that the fast forward leaves out when nobody reads them: their tensors are then null.
  std::vector<int> optional_outputs = {};
  /// Inputs that take no numbers below 0: variances.
  std::vector<int> variance_inputs = {};
  /// The values that the op itself keeps from step to step: ForwardContext::state.
  std::vector<OpState> state = {};
  /// The values of Phase::quantization_step from which on the op does something else, in any order.
  std::vector<std::int64_t> delays = {};
};

/// What forward sees. Tensors belong to the plan, or for variables and feeds to the session, and must not outlive the
/// call. Pointers are never null unless a member says so.
struct ForwardContext : Phase {
  std::vector<const Tensor*> inputs;
  /// Null for OpTraits::optional_outputs that nobody reads (fast backend only).
  std::vector<Tensor*> outputs;
  /// The tensors that Op::saved asked for; empty when no backward follows (and always in the reference backend).
  std::vector<Tensor*> saved;
  /// One for each input: see update_of. Empty where the run updates none.
  std::vector<Tensor*> updates;
  /// Where forward leaves output 0 packed, too (PacksOutput, PassesPacked); null unless the plan wants it. Where that
  /// wants nothing else of it, output 0 is not defined().
  Tensor* packed = nullptr;
  /// The inputs in that form, and these forms, for an op that ReadsPacked or PassesPacked and is to read them so: the
  /// inputs themselves may hold anything. Empty otherwise.
  std::vector<const Tensor*> packed_inputs;
  std::vector<PackedForm> packed_forms;
  /// What the op rounds. One that reads packed inputs also reads these in backward then, and only these.
  FactorRounding rounding = FactorRounding::kNone;
  /// One for each of OpTraits::state: staged in the same way, but present in every run (not committed unless
  /// training).
  std::vector<Tensor*> state;
  /// Differs by session seed, node name and step; the same in forward and backward of one step.
  std::uint64_t random_key = 0;
  /// The place of these inputs in a larger batch (core/engine/shard_exchange.h): so many slices of the same size come
  /// before them.
  std::int64_t slice = 0;
  /// Where forward leaves what ObservesBatch says; empty unless the run is a slice of a larger batch.
  std::span<ShardStatistic> observed;

  const Tensor& input(int i) const { return *inputs[i]; }
  Tensor& output(int i) const { return *outputs[i]; }
  /// The staged new value of one of OpTraits::updated_inputs, which holds the current one when forward starts. The
  /// session commits it after a training step; the input keeps the old value meanwhile. Null unless the run updates it.
  Tensor* update_of(int input) const { return updates.empty() ? nullptr : updates[input]; }
};

/// The view of backward: the forward context (values that traits() did not ask for may hold anything by now) and the
/// gradients. backward overwrites every d_input that is not null; the plan adds up the gradients of a tensor with
/// several consumers.
struct BackwardContext {
  const ForwardContext* forward = nullptr;
  /// Null where no gradient reaches an output; at least one is not null.
  std::vector<const Tensor*> d_outputs;
  /// Null where nobody asks for the gradient.
  std::vector<Tensor*> d_inputs;
};

/// One operation: it declares its name, attributes, shapes, both directions and what these read. What only some ops do
/// (find something out about a batch, spare work in some phases, run as one with others) is in
/// core/graph/op_interfaces.h. Ops are immutable values: a rewrite exchanges an op, it never edits one, and
/// graphs share them. Its tensors live elsewhere.
///
/// The class of an op is known to its .cpp file only. The header has the op's kind: a struct with its type, the struct
/// of its attributes and a function that makes one (Conv2d in layers/conv2d.h). Node::as asks a node for it.
class Op {
 public:
  virtual ~Op() = default;

  /// "Conv2D", the type in graph JSON.
  virtual std::string_view type() const = 0;
  /// The op's struct of attributes, or null: Node::as knows the struct by the type.
  virtual const void* attributes() const { return nullptr; }
  /// The attributes of an op of this kind, null of another.
  template <class Kind>
  const typename Kind::Attributes* as() const {
    return type() == Kind::kType ? static_cast<const typename Kind::Attributes*>(attributes()) : nullptr;
  }
  /// Shows the attributes to a visitor that writes them.
  virtual void write_attributes(AttributeVisitor&) const {}
  /// Lets a visitor set the attributes of a freshly made op.
  virtual void read_attributes(AttributeVisitor&) {}
  /// Sets the attributes of a freshly made op that have another default now than in an earlier version of graph JSON to
  /// that of the version, before those of a file are read.
  virtual void take_defaults_of(int /*format_version*/) {}
  /// Whether graph JSON shows the attribute when it is at its default: so that a reader of a file need not know that.
  virtual bool writes_default(std::string_view /*attribute*/) const { return false; }

  /// The outputs' shapes. Throws Error that states the rule and both shapes; the graph puts type and node name before
  /// it. Also throws when the attributes are out of range.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const = 0;
  virtual OpTraits traits() const { return {}; }
  /// The tensors (masks, workspaces) that the fast forward leaves for the fast backward: ForwardContext::saved.
  virtual std::vector<TensorSpec> saved(std::span<const TensorSpec> /*inputs*/) const { return {}; }

  /// The fast backend: float32.
  virtual void forward(const ForwardContext& context) const = 0;
  virtual void backward(const BackwardContext& context) const;
  /// The reference backend: all floating tensors are float32 or all are float64.
  virtual void reference_forward(const ForwardContext& context) const = 0;
  virtual void reference_backward(const BackwardContext& context) const;
};

/// The common part of all ops of one kind: type and attributes.
template <class Kind>
class OpOf : public Op {
 public:
  using Attributes = typename Kind::Attributes;

  explicit OpOf(const Attributes& attributes) : attributes_(attributes) {}
  std::string_view type() const final { return Kind::kType; }
  const void* attributes() const final { return &attributes_; }
  void write_attributes(AttributeVisitor& writer) const final {
    Attributes copy = attributes_;
    copy.visit(writer);
  }
  void read_attributes(AttributeVisitor& reader) final { attributes_.visit(reader); }

 protected:
  Attributes attributes_;
};

/// Calls `body` with a float or double value whose type is the tensor's element type: the door into the templates of
/// layers/reference.
template <class Body>
void with_float_type(const Tensor& tensor, Body&& body) {
  if (tensor.dtype() == DType::kFloat64)
    body(double{});
  else
    body(float{});
}

// Checks that every shape inference needs; the texts are completed by the graph with the node's type and name.

/// Throws unless there are exactly `count` inputs.
void require_inputs(std::span<const TensorSpec> inputs, std::size_t count);
/// Throws unless input `index`, called `role` in the message ("filter"), has that rank.
void require_rank(std::span<const TensorSpec> inputs, std::size_t index, int rank, std::string_view role);
/// Throws unless all inputs (or the one given) are float32.
void require_float(std::span<const TensorSpec> inputs);
void require_float(const TensorSpec& input, std::string_view role);
/// Throws when an input has an extent of 0.
void require_elements(std::span<const TensorSpec> inputs);

}  // namespace miniqat
