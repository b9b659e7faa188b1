// Inference with the integer engine (8 bits, per tensor) beside our own float inference: a Session on the float graph.
//
// `images/s` comes from the median run. Both take turns within one benchmark, because machines drift: `x_float` is the
// engine's speed as a multiple of the float graph's. `GMAC/s` are the multiply-adds of the model a second.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/integer_models.h"
#include "benchmarks/machine.h"
#include "core/engine/session.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "integer/engine.h"
#include "integer/reference/engine.h"

namespace miniqat::benchmarks {
namespace {

struct TimedWorkload {
  InferenceWorkload workload;
  std::int64_t batch;
  /// Runs of each that are timed, and before that runs that warm up.
  int runs;
};

const std::vector<TimedWorkload>& workloads() {
  static const std::vector<TimedWorkload> all = {
      {{"lenet"}, 1, 400},
      {{"lenet"}, 64, 40},
      {{"mobilenet_v1", 32}, 1, 200},
      {{"mobilenet_v1", 32}, 64, 20},
      {{"mobilenet_v1", 224}, 1, 40},
      {{"mobilenet_v1", 224}, 64, 3},
  };
  return all;
}

/// The engine against the reference loops on a few pictures: what is wrong, or "". Large pictures take the reference
/// loops seconds; these have just the strides of large ones.
std::string difference_from_reference(const InferenceWorkload& workload) {
  constexpr std::int64_t kLarge = 72;
  const integer::Model model = integer_model({workload.model, std::min(workload.side, kLarge)});
  const Tensor images = noise(model, 3);
  integer::Engine engine(model);
  const std::vector<Tensor> actual = engine.run_all(images), expected = integer::reference::run(model, images);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!std::ranges::equal(actual[i].values<std::uint8_t>(), expected[i].values<std::uint8_t>()))
      return concat("\"", model.tensors[i].name, "\" is not what the reference loops make it");
  return "";
}

/// One workload's model, made and verified once for all batches and thread counts.
struct Candidate {
  std::string name;
  std::string fault;
  std::optional<integer::Model> model;
};

const Candidate& candidate_for(const InferenceWorkload& workload) {
  static Candidate candidate;
  if (candidate.name == workload.name()) return candidate;
  candidate.name = workload.name();
  candidate.fault = difference_from_reference(workload);
  candidate.model = integer_model(workload);
  return candidate;
}

void run(benchmark::State& state, const TimedWorkload& timed, int threads) {
  const Candidate& candidate = candidate_for(timed.workload);
  if (!candidate.fault.empty()) return give_up(state, candidate.fault);
  set_thread_count(threads);
  integer::Engine engine(*candidate.model);
  const Tensor images = noise(*candidate.model, timed.batch);
  Graph graph = float_graph(timed.workload, timed.batch);
  Session session(graph);
  const Output input = graph.output_at("images");
  Tensor pixels(input.shape());
  std::ranges::copy(images.values<std::uint8_t>(), pixels.data<float>());
  const RunRequest request{.fetches = graph.outputs()};
  const Feeds feeds = {{input, pixels}};
  std::vector<double> times, float_times;
  for (int i = 0; i < std::max(2, timed.runs / 4); ++i) {
    engine.run(images);
    session.run(request, feeds);
  }
  for (auto _ : state) {
    times.push_back(seconds_of([&] { engine.run(images); }));
    state.SetIterationTime(times.back());
    float_times.push_back(seconds_of([&] { session.run(request, feeds); }));
  }
  const double time = median(times);
  state.counters["images/s"] = static_cast<double>(timed.batch) / time;
  state.counters["x_float"] = median(float_times) / time;
  state.counters["GMAC/s"] = static_cast<double>(timed.batch * candidate.model->multiply_adds()) / time / 1e9;
}

void register_all() {
  const int most = available_cores() > 1 ? 2 : 1;
  for (const TimedWorkload& timed : workloads())
    for (int threads = 1; threads <= most; ++threads) {
      const std::string name = concat(timed.workload.name(), "/batch:", timed.batch, "/threads:", threads);
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { run(state, timed, threads); })
          ->Iterations(timed.runs)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_benchmarks(argc, argv, miniqat::benchmarks::register_all);
}
