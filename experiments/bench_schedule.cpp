// The schedule of a training step: when backward hands over which gradient. experiments/replay.cpp replays
// it on networks that there are not (docs/scale.md).
//
//   build/release/experiments/bench_schedule MODEL [BATCH]
//   mpirun -np 2 --bind-to core build/release/experiments/bench_schedule MODEL [BATCH]
//
// One thread a rank, W8A8, slices of BATCH pictures of noise. Prints lines `tensor SECONDS FLOATS` in the order of
// backward, counted from the step's begin, then `backward`, `step` (seconds) and `statistics` (their number): the
// median step of those in which the ranks compute side by side and exchange nothing. Ranks also take turns with steps
// that do exchange: `together RANKS SECONDS` is the median of these. A round in which other programs took more than 3%
// of a rank's core is not counted; `rounds KEPT OF` says how many there were.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "bench/noise_training.h"
#include "core/engine/shard_exchange.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "distributed/launch.h"
#include "distributed/rank_exchange.h"

namespace miniqat::benchmarks {
namespace {

using distributed::Communicator;
using distributed::RankExchange;

constexpr int kWarmUp = 10;
constexpr int kRounds = 15;
/// The seconds that a block of steps of one kind takes in a round.
constexpr double kBlockSeconds = 0.3;
constexpr double kLongest = 240;
constexpr double kOwnShare = 0.97;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

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

/// Writes down when a step comes by. Whatever the other parts of the batch are, they add nothing.
class Recorder : public ShardExchange {
 public:
  explicit Recorder(ShardRange range) : range_(range) {}
  ShardRange range() const override { return range_; }
  void begin() {
    times_ = {};
    begin_ = now();
  }
  StepTimes end() {
    times_.step = seconds();
    return times_;
  }
  void start(Tensor& sum, const Tensor&) override { times_.tensors.push_back({seconds(), sum.elements()}); }
  void combine(std::span<ShardStatistic> values) override {
    times_.backward = seconds();
    times_.statistics = values.size();
  }
  void finish(int) override {}
  void abandon() noexcept override {}
  void add_up(std::span<std::int64_t>) override {}

 private:
  double seconds() const { return now() - begin_; }

  ShardRange range_;
  StepTimes times_;
  double begin_ = 0;
};

std::unique_ptr<bench::NoiseTraining> make_training(const char* model, std::int64_t batch, ShardExchange& exchange) {
  set_thread_count(1);
  auto training = std::make_unique<bench::NoiseTraining>(
      bench::NoiseWorkload{.model = model, .batch = batch, .rewrite = quantize::RewriteOptions{}});
  training->session().set_shards({.exchange = exchange});
  for (int step = 0; step < kWarmUp; ++step) training->step();
  return training;
}

/// One process, or several ranks that do the same at the same time.
class Rounds {
 public:
  Rounds(Communicator& ranks, const char* model, std::int64_t batch)
      : ranks_(ranks), recorder_(range_of(ranks)), alone_(make_training(model, batch, recorder_)) {
    if (ranks.size() > 1) {
      exchange_ = std::make_unique<RankExchange>(ranks, ranks.size());
      together_ = make_training(model, batch, *exchange_);
    }
    recorder_.begin();
    alone_->step();
    steps_ = std::max(1, static_cast<int>(kBlockSeconds / slowest(recorder_.end().step)));
  }

  void run() {
    const double end = now() + kLongest;
    while (kept_ < kRounds && slowest(now()) < end) {
      const double begin = now(), processor = processor_seconds();
      round();
      const double missing = 1 - (processor_seconds() - processor) / (now() - begin);
      ++tried_;
      if (slowest(missing) > 1 - kOwnShare) continue;
      ++kept_;
      steps_alone_.insert(steps_alone_.end(), round_.begin(), round_.end());
      seconds_together_.push_back(block_);
    }
    if (kept_ == 0) fail("other programs used this machine's cores in all of ", tried_, " rounds");
  }

  void print() {
    const auto middle = steps_alone_.begin() + std::ssize(steps_alone_) / 2;
    std::ranges::nth_element(steps_alone_, middle, {}, &StepTimes::step);
    for (const HandOver& tensor : middle->tensors)
      std::printf("tensor %.7f %lld\n", tensor.seconds, static_cast<long long>(tensor.floats));
    std::printf("backward %.7f\nstep %.7f\nstatistics %zu\n", middle->backward, middle->step, middle->statistics);
    if (exchange_) {
      std::ranges::sort(seconds_together_);
      std::printf("together %d %.7f\n", ranks_.size(), seconds_together_[seconds_together_.size() / 2]);
    }
    std::printf("rounds %d %d\n", kept_, tried_);
  }

 private:
  /// A process that is alone has half of a batch.
  static ShardRange range_of(const Communicator& ranks) {
    return {.total = std::max(2, ranks.size()), .first = ranks.rank(), .count = 1};
  }
  double slowest(double seconds) { return std::ranges::max(distributed::gathered(ranks_, seconds)); }

  void round() {
    round_.clear();
    distributed::wait_for(*ranks_.barrier());
    for (int step = 0; step < steps_; ++step) {
      recorder_.begin();
      alone_->step();
      round_.push_back(recorder_.end());
    }
    if (!exchange_) return;
    distributed::wait_for(*ranks_.barrier());
    const double begin = now();
    for (int step = 0; step < steps_; ++step) together_->step();
    block_ = slowest((now() - begin) / steps_);
  }

  Communicator& ranks_;
  Recorder recorder_;
  std::unique_ptr<bench::NoiseTraining> alone_;
  std::unique_ptr<RankExchange> exchange_;
  std::unique_ptr<bench::NoiseTraining> together_;
  int steps_ = 1;
  int kept_ = 0;
  int tried_ = 0;
  std::vector<StepTimes> round_;
  double block_ = 0;
  std::vector<StepTimes> steps_alone_;
  std::vector<double> seconds_together_;
};

void measure(Communicator& ranks, const char* model, std::int64_t batch) {
  Rounds rounds(ranks, model, batch);
  rounds.run();
  if (ranks.rank() == 0) rounds.print();
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int count, char** words) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: bench_schedule MODEL [BATCH]\n");
    return 2;
  }
  try {
    miniqat::distributed::Communicator& ranks = miniqat::distributed::open_ranks();
    miniqat::benchmarks::measure(ranks, words[1], count == 3 ? std::atoll(words[2]) : 128);
    ranks.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_schedule: %s\n", error.what());
    miniqat::distributed::end_ranks(1);
    return 1;
  }
}
