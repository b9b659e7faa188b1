#pragma once

#include "core/engine/plan/plan.h"

namespace miniqat {

/// Looks on while a session runs the steps of a plan, in their order: for checks of what the fast backend computes. An
/// observer only reads; tensors are valid during the call. An exception it throws ends the run as one of an op does.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// Feeds and variables are bound, staged tensors hold the current values.
  virtual void begin(const Plan&) {}
  virtual void before(const Plan::ForwardStep&) {}
  virtual void after(const Plan::ForwardStep&) {}
  virtual void before(const Plan::BackwardStep&) {}
  /// Before the gradients of tensors with several consumers are added up.
  virtual void after(const Plan::BackwardStep&) {}
  /// Fetches, gradients and staged tensors are final, nothing is committed yet.
  virtual void end(const Plan&) {}
};

}  // namespace miniqat
