#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "bench/judge/exact_op.h"
#include "core/engine/plan/plan.h"

namespace miniqat::bench {

/// A step of a fast plan, one node or several that run as one, computed anew from the very numbers that the fast
/// backend finds there, node by node on the reference loops in float64.
class ExactStep {
 public:
  /// `step` is about to run, and must outlive this.
  explicit ExactStep(const Plan::ForwardStep& step);

  /// What the step should have computed, by position in its context (updates: by input).
  Bounded output(std::size_t k) const;
  Bounded update(std::size_t k) const;
  Bounded state(std::size_t k) const;

  /// The exact gradient of several inputs of the step together: those that are one tensor of the graph.
  struct Gradient {
    std::vector<std::size_t> inputs;
    Bounded sum;
  };
  /// For the inputs whose gradient is wanted, given those of the outputs (which may have gaps).
  std::vector<Gradient> backward(const std::vector<Bounded>& d_outputs, const std::vector<bool>& wanted) const;

 private:
  using Key = std::pair<const Node*, int>;
  static Key key(const Output& output) { return {output.node, output.index}; }

  void run_member(std::size_t m);
  Bounded input_of(std::size_t m, std::size_t i) const;
  int position_of(const Output& input) const;
  bool is_inside(const Output& input) const { return inside_.contains(key(input)); }
  std::vector<bool> wanted_of(std::size_t m, const std::vector<bool>& wanted) const;
  std::vector<Bounded> bytes_backward(std::size_t m, const Bounded& arriving, const std::vector<bool>& wanted) const;

  const Plan::ForwardStep& step_;
  std::vector<Tensor> inputs_;
  std::vector<std::unique_ptr<ExactOp>> members_;
  /// What members compute.
  std::map<Key, Bounded> inside_;
  /// In the order of the context.
  std::vector<Bounded> updates_;
  std::vector<Bounded> state_;
};

/// A copy as float64; integers stay what they are.
Tensor wide_copy(const Tensor& tensor);
/// The numbers that bytes stand for, float32.
Tensor unpacked(const PackedForm& form, const Tensor& bytes, const Shape& shape);
/// What a step reads, float32: from its packed inputs if it reads these.
std::vector<Tensor> inputs_of(const Plan::ForwardStep& step);

}  // namespace miniqat::bench
