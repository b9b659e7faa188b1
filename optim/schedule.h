#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace miniqat::optim {

enum class ScheduleKind {
  /// 1
  kConstant,
  /// factor^floor(t / every)
  kStep,
  /// factor^(t / every)
  kExponential,
  /// floor + (1 - floor) * (1 + cos(pi * t / n)) / 2 with n = total_steps - warmup_steps, and floor after that
  /// (Loshchilov and Hutter 2017, eq. 5, one period).
  kCosine,
};

struct ScheduleOptions {
  /// Steps 1 to n have the factors s + (1 - s) k/n for k = 1, 2, ..., n, with s = warmup_start; the schedule proper
  /// begins at step n + 1.
  std::int64_t warmup_steps = 0;
  /// In [0, 1): the factor from which warm-up rises.
  double warmup_start = 0;
  /// step, exponential: the steps in which the rate falls by `factor`. At least 1 there.
  std::int64_t every = 0;
  /// step, exponential: in (0, 1].
  double factor = 0.1;
  /// cosine: the length of training, warm-up included. More than warmup_steps there.
  std::int64_t total_steps = 0;
  /// cosine: what is left at the end, as a fraction of the base rate in [0, 1].
  double floor = 0;
};

/// The factor on the base learning rate in each step. Step numbers start at 1; t above is step - 1 - warmup_steps, so
/// the first step after warm-up has the factor 1.
class Schedule {
 public:
  /// Constant, without warm-up.
  Schedule() = default;
  /// Throws Error naming the option that is out of range, of those that the kind reads.
  explicit Schedule(ScheduleKind kind, const ScheduleOptions& options = {});

  /// Throws Error for a step before the first.
  double factor(std::int64_t step) const;

 private:
  ScheduleKind kind_ = ScheduleKind::kConstant;
  ScheduleOptions options_;
};

/// "constant", "step", "exponential", "cosine".
std::span<const std::string_view> schedule_names();

/// Throws Error that lists the names when `name` is none of them.
Schedule make_schedule(std::string_view name, const ScheduleOptions& options = {});

}  // namespace miniqat::optim
