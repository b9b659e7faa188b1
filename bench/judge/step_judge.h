#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace miniqat {
class Node;
class StepObserver;
}  // namespace miniqat

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
///   session.set_observer(judge.observer());
///   session.train_step(...);
///   for (const StepFinding& finding : judge.findings()) ...
///
/// For the fast backend only. Takes as long as several runs of the reference loops, and all tensors' memory.
class StepJudge {
 public:
  StepJudge();
  ~StepJudge();
  /// For Session::set_observer; lives as long as the judge.
  StepObserver* observer() const;

  /// The findings of all runs so far.
  const std::vector<StepFinding>& findings() const;
  std::int64_t steps() const;
  /// Numbers that were compared, and those of them that might have been off by a tenth of their tensor's largest.
  std::int64_t compared() const;
  std::int64_t vague() const;

 private:
  class Observer;
  std::unique_ptr<Observer> observer_;
};

}  // namespace miniqat::bench
