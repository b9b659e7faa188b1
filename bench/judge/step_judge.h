#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/judge/exact_step.h"
#include "core/engine/sweep.h"

namespace miniqat::bench {

/// Something that the fast backend computed otherwise than it should have. Its nodes belong to the session's graph.
struct StepFinding {
  /// The step's node, and the types of all nodes that run in it.
  const Node* node = nullptr;
  std::vector<const Node*> members;
  /// "output 0", "the gradient of input 1 (conv1/weights)", ...
  std::string what;
  /// How it differs: the place, both numbers and how much was allowed.
  std::string difference;

  /// `[Conv2D "conv1/Conv2D"] the gradient of ... differs ...`.
  std::string text() const;
};

/// Judges a fast session step by step, each given equal inputs. A step is a node, or several that run as one. Its
/// results, forward and backward, are compared with the reference loops in float64 on the same numbers, with tolerances
/// derived for each op (exact_op.h). So the roundings of one step never count against another, and a deep network is
/// judged as sharply as a single layer. Besides, nothing may change what lies between its producer and its last reader.
/// Results from a NaN or an infinity are not judged.
///
///   StepJudge judge;
///   session.set_observer(&judge);
///   session.train_step(...);
///   for (const StepFinding& finding : judge.findings) ...
///
/// For the fast backend only. Takes as long as several runs of the reference loops, and all tensors' memory.
class StepJudge final : public StepObserver {
 public:
  void begin(const Plan& plan) override;
  void before(const Plan::ForwardStep& step) override;
  void after(const Plan::ForwardStep& step) override;
  void before(const Plan::BackwardStep& step) override;
  void after(const Plan::BackwardStep& step) override;
  void end(const Plan& plan) override;

  /// The findings of all runs so far.
  std::vector<StepFinding> findings;
  std::int64_t steps = 0;
  /// Numbers that were compared, and those of them that might have been off by a tenth of their tensor's largest.
  std::int64_t compared = 0;
  std::int64_t vague = 0;

 private:
  bool is_judged(const Plan::ForwardStep& step) const { return !unjudged_.contains(&step); }
  void compare(const Plan::ForwardStep& step, const std::string& what, const Tensor& got, const Bounded& wanted);
  void compare_sum(const Plan::ForwardStep& step, const Plan::BackwardStep& backward,
                   const ExactStep::Gradient& gradient);
  void expect_untouched(const Plan::ForwardStep* step, const Tensor* tensor, const std::string& what);
  void note(const Plan::ForwardStep& step, std::string what, std::string difference);
  const Plan::ForwardStep& forward_of(const Plan::BackwardStep& step) const;

  std::map<const ForwardContext*, const Plan::ForwardStep*> steps_by_context_;
  std::map<const Plan::ForwardStep*, std::unique_ptr<ExactStep>> exact_;
  /// The content of each tensor: written last, or found there first.
  std::map<const Tensor*, Tensor> contents_;
  /// Steps that were given something that is not finite.
  std::set<const Plan::ForwardStep*> unjudged_;
  std::vector<Bounded> d_outputs_;
};

}  // namespace miniqat::bench
