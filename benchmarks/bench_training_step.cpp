// The training step: forward, backward and SGD with momentum on a batch held in memory, in float and with
// quantization-aware training in every phase that its arithmetic differs in.
//
// `images/s` comes from the median step. The ratios come from steps taken in turns within one benchmark, because
// machines drift: `x_float` is the time of a step as a multiple of the float step's, `x_one_thread` the speed as a
// multiple of one thread's. `arena_MB` is the memory of the plan, `x_float_arena` its multiple of the float plan's.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "benchmarks/training.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

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

/// Everything that takes turns in one benchmark.
struct Contest {
  Training* training = nullptr;
  Training* in_float = nullptr;
  /// On one thread; null when `training` is.
  Training* alone = nullptr;
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
  return "";
}

void run(benchmark::State& state, const TimedWorkload& timed, const Arithmetic& arithmetic, int threads) {
  Contest contest;
  if (const std::string fault = prepare(timed, arithmetic, threads, contest); !fault.empty())
    return give_up(state, fault);
  const bool is_float = contest.in_float == contest.training;
  std::vector<double> times, float_times, lone_times;
  for (auto _ : state) {
    if (contest.alone != nullptr) lone_times.push_back(contest.alone->timed_step());
    if (!is_float) float_times.push_back(contest.in_float->timed_step());
    times.push_back(contest.training->timed_step());
    state.SetIterationTime(times.back());
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
        if (threads < most && !timed.workload.model.starts_with("lenet")) continue;
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
