// The schedule of a training step: when backward hands over which gradient. distributed/simulation/replay.cpp replays
// it on networks that there are not (docs/scale.md).
//
//   build/release/benchmarks/bench_schedule MODEL [BATCH]
//
// One thread, W8A8, a batch of noise; the median step of the rounds. Prints lines `tensor SECONDS FLOATS` in the order
// of backward, counted from the step's begin, then `backward`, `step` (seconds) and `statistics` (their number).

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "benchmarks/training.h"
#include "core/engine/shard_exchange.h"

namespace miniqat::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 10;
constexpr int kRounds = 15;

struct HandOver {
  double seconds;
  std::int64_t floats;
};

struct StepTimes {
  std::vector<HandOver> tensors;
  double backward = 0;
  double step = 0;
  std::size_t statistics = 0;
};

/// Writes down when a step comes by. Whatever the other half of the batch is, it adds nothing.
class Recorder : public ShardExchange {
 public:
  ShardRange range() const override { return {.total = 2, .first = 0, .count = 1}; }
  void begin() {
    times_ = {};
    begin_ = Clock::now();
  }
  StepTimes end() {
    times_.step = seconds();
    return times_;
  }
  void start(Tensor& sum) override { times_.tensors.push_back({seconds(), sum.elements()}); }
  void combine(std::span<ShardStatistic> values) override {
    times_.backward = seconds();
    times_.statistics = values.size();
  }
  void finish() override {}
  void abandon() noexcept override {}
  void add_up(std::span<std::int64_t>) override {}

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  StepTimes times_;
  Clock::time_point begin_;
};

void print_schedule(const char* model, std::int64_t batch) {
  Training training({.model = model, .batch = batch}, {.name = "W8A8", .phase = Phase::kQuantizing}, 1);
  Recorder recorder;
  training.session().set_shards({.range = recorder.range(), .threads = 1, .at_once = 1, .exchange = &recorder});
  for (int step = 0; step < kWarmUp; ++step) training.step();
  std::vector<StepTimes> rounds;
  for (int round = 0; round < kRounds; ++round) {
    recorder.begin();
    training.step();
    rounds.push_back(recorder.end());
  }
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2, {}, &StepTimes::step);
  const StepTimes& median = rounds[kRounds / 2];
  for (const HandOver& tensor : median.tensors)
    std::printf("tensor %.7f %lld\n", tensor.seconds, static_cast<long long>(tensor.floats));
  std::printf("backward %.7f\nstep %.7f\nstatistics %zu\n", median.backward, median.step, median.statistics);
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int count, char** words) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: bench_schedule MODEL [BATCH]\n");
    return 2;
  }
  try {
    miniqat::benchmarks::print_schedule(words[1], count == 3 ? std::atoll(words[2]) : 128);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_schedule: %s\n", error.what());
    return 1;
  }
}
