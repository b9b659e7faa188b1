// The training step: forward, backward and SGD with momentum on a batch held in memory, in float and with
// quantization-aware training in every phase that its arithmetic differs in.
//
// `images/s` comes from the median step. The ratios come from steps taken in turns within one benchmark, because
// machines drift: `x_float` is the time of a step as a multiple of the float step's, `x_one_thread` the speed as a
// multiple of one thread's, `vs_limit` the speed as a fraction of the bare oneDNN program's (limit_training.h).
// `arena_MB` is the memory of the plan, `x_float_arena` its multiple of the float plan's.

#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/limit_training.h"
#include "benchmarks/machine.h"
#include "benchmarks/training.h"
#include "core/error.h"
#include "core/parallel.h"
#include "models/models.h"

namespace miniqat::benchmarks {
namespace {

struct TimedWorkload {
  Workload workload;
  /// Steps that warm up, and steps that are timed: fixed, so that a benchmark is set up only once.
  int warm_up;
  int steps;
  /// Also on one thread.
  bool one_thread = true;
};

const std::vector<TimedWorkload>& workloads() {
  static const std::vector<TimedWorkload> all = {
      {{.model = "lenet"}, 20, 24},
      {{.model = "lenet5"}, 20, 300},
      {{.model = "mobilenet_v1", .batch = 64, .side = 32, .learning_rate = 0.02, .reference_rate = 0.001}, 6, 5},
      {{.model = "mobilenet_v1", .batch = 8, .side = 224, .learning_rate = 0.02, .reference_rate = 0.001}, 4, 3, false},
  };
  return all;
}

const std::vector<Arithmetic>& arithmetics_of(const Workload& workload) {
  using quantize::BnFold;
  static const std::vector<Arithmetic> plain = {kFloatArithmetic, {.name = "W8A8", .phase = Phase::kQuantizing}};
  static const std::vector<Arithmetic> folded = {
      kFloatArithmetic,
      {.name = "W8A8_tf_observing", .phase = Phase::kObserving},
      {.name = "W8A8_single_observing", .phase = Phase::kObserving, .bn_fold = BnFold::kSingle},
      {.name = "W8A8_tf", .phase = Phase::kQuantizing},
      {.name = "W8A8_single", .phase = Phase::kQuantizing, .bn_fold = BnFold::kSingle},
      {.name = "W8A8_tf_frozen", .phase = Phase::kFrozen},
      {.name = "W8A8_single_frozen", .phase = Phase::kFrozen, .bn_fold = BnFold::kSingle},
  };
  return workload.model == "mobilenet_v1" ? folded : plain;
}

/// The bare program on the variables that a training has now.
class Limit {
 public:
  Limit(const Workload& workload, const Arithmetic& arithmetic, Training& training, bool dropout)
      : training_(training),
        limit_({.model = workload.model,
                .batch = workload.batch,
                .bits = arithmetic.phase == Phase::kFloat ? 0 : arithmetic.bits,
                .dropout = dropout,
                .descent = {.rate = static_cast<float>(training.sgd().learning_rate),
                            .momentum = static_cast<float>(training.sgd().momentum),
                            .weight_decay = static_cast<float>(training.sgd().weight_decay)}},
               [&](const std::string& name) { return training.session().variable(name).data<float>(); }) {}

  float step() { return limit_.step(training_.images().data<float>(), training_.labels().data<std::int32_t>()); }

 private:
  Training& training_;
  limit::Training limit_;
};

/// The limit against our losses, from the same weights and without dropout, which draws other numbers there: what is
/// wrong, or "".
std::string difference_from_limit(const Workload& workload, const Arithmetic& arithmetic, int threads) {
  set_thread_count(threads);
  Training ours(workload, arithmetic, threads, {.dropout = false});
  Limit limit(workload, arithmetic, ours, false);
  float first = 0, last = 0;
  for (int step = 1; step <= 2; ++step) {
    const float expected = ours.step();
    last = limit.step();
    if (step == 1) first = last;
    if (!(std::abs(last - expected) <= 1e-3f * std::abs(expected)))
      return concat("the limit's loss of step ", step, " is ", last, ", ours ", expected);
  }
  for (int i = 0; i < 20; ++i) last = limit.step();
  return last < 0.95f * first ? "" : concat("the limit's loss does not fall: ", first, " to ", last);
}

/// Everything that takes turns in one benchmark.
struct Contest {
  Training* training = nullptr;
  Training* in_float = nullptr;
  /// On one thread; null when `training` is.
  Training* alone = nullptr;
  /// Null where there is no such program.
  std::unique_ptr<Limit> limit;
};

std::string prepare(const TimedWorkload& timed, const Arithmetic& arithmetic, int threads, Contest& contest) {
  static TrainingPool pool;
  const Workload& workload = timed.workload;
  contest.in_float = pool.find(workload, kFloatArithmetic, threads, timed.warm_up);
  if (contest.in_float == nullptr) return pool.fault();
  contest.training = pool.find(workload, arithmetic, threads, timed.warm_up);
  if (contest.training == nullptr) return pool.fault();
  if (threads > 1 && timed.one_thread) {
    contest.alone = pool.find(workload, arithmetic, 1, timed.warm_up);
    if (contest.alone == nullptr) return pool.fault();
  }
  if (!limit::Training::knows(workload.model)) return "";
  if (const std::string fault = difference_from_limit(workload, arithmetic, threads); !fault.empty()) return fault;
  set_thread_count(threads);
  contest.limit = std::make_unique<Limit>(workload, arithmetic, *contest.training, true);
  contest.limit->step();
  return "";
}

void run(benchmark::State& state, const TimedWorkload& timed, const Arithmetic& arithmetic, int threads) {
  Contest contest;
  if (const std::string fault = prepare(timed, arithmetic, threads, contest); !fault.empty())
    return give_up(state, fault);
  const bool is_float = contest.in_float == contest.training;
  std::vector<double> times, float_times, lone_times, limit_times;
  for (auto _ : state) {
    if (contest.alone != nullptr) lone_times.push_back(contest.alone->timed_step());
    if (!is_float) float_times.push_back(contest.in_float->timed_step());
    times.push_back(contest.training->timed_step());
    state.SetIterationTime(times.back());
    if (contest.limit) limit_times.push_back(seconds_of([&] { contest.limit->step(); }));
  }
  const double time = median(times);
  state.counters["images/s"] = static_cast<double>(timed.workload.batch) / time;
  const auto arena = static_cast<double>(contest.training->session().plan_memory().arena);
  state.counters["arena_MB"] = arena / 1e6;
  if (!is_float) {
    state.counters["x_float"] = time / median(float_times);
    state.counters["x_float_arena"] = arena / static_cast<double>(contest.in_float->session().plan_memory().arena);
  }
  if (!lone_times.empty()) state.counters["x_one_thread"] = median(lone_times) / time;
  if (!limit_times.empty()) state.counters["vs_limit"] = median(limit_times) / time;
}

std::string name_of(const Workload& workload, const Arithmetic& arithmetic, int threads) {
  const std::string side = workload.side == 0 ? "" : concat("/side:", workload.side);
  return concat(workload.model, side, "/", arithmetic.name, "/batch:", workload.batch, "/threads:", threads);
}

void register_all() {
  const int most = available_cores() > 1 ? 2 : 1;
  for (const TimedWorkload& timed : workloads())
    for (const Arithmetic& arithmetic : arithmetics_of(timed.workload))
      for (int threads = 1; threads <= most; ++threads) {
        // MobileNet's steps take long; what one thread does is in x_one_thread.
        if (threads < most && !limit::Training::knows(timed.workload.model)) continue;
        const std::string name = name_of(timed.workload, arithmetic, threads);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, timed, arithmetic, threads); })
            ->Iterations(timed.steps)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_benchmarks(argc, argv, miniqat::benchmarks::register_all);
}
