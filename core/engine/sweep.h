#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/engine/plan/plan.h"

namespace miniqat {

class Profile;

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

/// How the steps of a plan run.
struct Sweep {
  Backend backend = Backend::kFast;
  /// The session's seed and the number of the training step: for random numbers.
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  /// ForwardContext::slice.
  std::int64_t slice = 0;
  Profile* profile = nullptr;
  StepObserver* observer = nullptr;
  /// Called with the place in Plan::backward when that step and its sums are done.
  std::function<void(std::size_t)> after_backward = {};
};

/// Runs all steps of a plan whose feeds and variables are bound: forward in order, then backward. No variable changes
/// in here, so that an Interruption before any of them loses nothing.
void sweep(Plan& plan, const Sweep& how);

/// total += part, elementwise, in parallel: two tensors of one shape, both float32 or both float64.
void add_to(Tensor& total, const Tensor& part);

}  // namespace miniqat
