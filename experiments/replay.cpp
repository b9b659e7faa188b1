// The exchange of one training step, run by SimGrid's SMPI on a network that does not exist. The code of the sums is
// miniqat's own (tensor_sums.cpp and below, over mpi_communicator.cpp); only computing is replaced by its time. All
// numbers are zeros. experiments/simulate-ranks builds and runs it (docs/scale.md):
//
//   smpirun -platform P.xml -hostfile HOSTS -np N replay SCHEDULE [way=auto] [bucket=262144] [add=0] [copy=0]
//     [receive=0] [interval=0]
//
// SCHEDULE is what experiments/bench_schedule prints: lines `tensor SECONDS FLOATS` (a gradient is handed over so long
// after the step's begin), `backward SECONDS` (its end), `step SECONDS` (the optimizer's end) and `statistics COUNT`.
// `way` is auto, a name of bucket_sum.h, or allreduce: no buckets, but one MPI_Allreduce of SMPI's after backward.
// `bucket` is in floats. Seconds of a core: `add` and `copy` for one float32, `receive` for a byte that arrives.
// `interval`: that of TensorSums; 0: buckets move on in calls only. Prints the seconds of a step without and with the
// other ranks.

#include <mpi.h>
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "distributed/mpi_communicator.h"
#include "distributed/rank_exchange.h"
#include "distributed/tensor_sums.h"

namespace miniqat::distributed {
namespace {

/// After one that makes the buckets. Rank 0 may begin a step a little before others.
constexpr int kSteps = 2;
/// The thread of TensorSums takes the core and gives it back.
constexpr double kBeatSeconds = 5e-6;

struct Options {
  std::string way = "auto";
  std::int64_t bucket = 1 << 18;
  double add = 0;
  double copy = 0;
  double receive = 0;
  double interval = 0;
};

Options read_options(int count, char** words) {
  Options options;
  for (int k = 0; k < count; ++k) {
    const std::string word = words[k], name = word.substr(0, word.find('=') + 1), value = word.substr(name.size());
    if (name == "way=")
      options.way = value;
    else if (name == "bucket=")
      options.bucket = std::stoll(value);
    else if (name == "add=")
      options.add = std::stod(value);
    else if (name == "copy=")
      options.copy = std::stod(value);
    else if (name == "receive=")
      options.receive = std::stod(value);
    else if (name == "interval=")
      options.interval = std::stod(value);
    else
      fail(word, " is no option of replay");
  }
  return options;
}

struct Schedule {
  struct HandOver {
    double seconds;
    std::int64_t floats;
  };
  std::vector<HandOver> tensors;
  double backward = 0;
  double step = 0;
  std::int64_t statistics = 0;

  std::int64_t floats() const {
    std::int64_t sum = 0;
    for (const HandOver& tensor : tensors) sum += tensor.floats;
    return sum;
  }
};

Schedule read_schedule(const char* path) {
  Schedule schedule;
  std::ifstream file(path);
  if (!file) fail("cannot read ", path);
  double number = 0;
  for (std::string word; file >> word >> number;) {
    if (word == "tensor") {
      std::int64_t floats = 0;
      file >> floats;
      schedule.tensors.push_back({number, floats});
    } else if (word == "backward") {
      schedule.backward = number;
    } else if (word == "step") {
      schedule.step = number;
    } else if (word == "statistics") {
      schedule.statistics = static_cast<std::int64_t>(number);
    } else if (word == "together" || word == "rounds") {
      file >> number;
    } else {
      fail(path, ": ", word, " is no word of a schedule");
    }
  }
  return schedule;
}

/// What the arrival of data costs: taking them out of the network, and the adding that follows.
class ChargedTransfer : public Transfer {
 public:
  ChargedTransfer(std::unique_ptr<Transfer> inner, double seconds) : inner_(std::move(inner)), seconds_(seconds) {}
  bool done() override {
    if (!inner_->done()) return false;
    smpi_execute_benched(std::exchange(seconds_, 0));
    return true;
  }

 private:
  std::unique_ptr<Transfer> inner_;
  double seconds_;
};

/// MPI with a core's time for what arrives.
class ChargedCommunicator : public Communicator {
 public:
  ChargedCommunicator(std::unique_ptr<Communicator> inner, const Options& options)
      : inner_(std::move(inner)), options_(options) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Communicator> channel() override {
    return std::make_unique<ChargedCommunicator>(inner_->channel(), options_);
  }
  /// Each number that arrives is added once.
  std::unique_ptr<Transfer> all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    return charged(inner_->all_to_all(out, in), in.size(), true);
  }
  /// Sums go round.
  std::unique_ptr<Transfer> all_gather(std::span<const std::byte> out, std::span<std::byte> in) override {
    return charged(inner_->all_gather(out, in), in.size(), false);
  }
  /// Parts, which are added, always arrive in the same place beside the rank's own; sums where they belong.
  std::unique_ptr<Transfer> swap(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
    if (place_of_parts_ == nullptr) place_of_parts_ = in.data();
    return charged(inner_->swap(partner, out, in), in.size(), in.data() == place_of_parts_);
  }
  std::unique_ptr<Transfer> broadcast(std::span<std::byte> data, int root) override {
    return inner_->broadcast(data, root);
  }
  std::unique_ptr<Transfer> barrier() override { return inner_->barrier(); }
  void abort(int status) override { inner_->abort(status); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<Transfer> charged(std::unique_ptr<Transfer> inner, std::size_t bytes, bool added) const {
    const double byte = options_.receive + (added ? options_.add / sizeof(float) : 0);
    return std::make_unique<ChargedTransfer>(std::move(inner), byte * static_cast<double>(bytes));
  }

  std::unique_ptr<Communicator> inner_;
  const Options& options_;
  const std::byte* place_of_parts_ = nullptr;
};

/// The ranks are threads of one process, and all their numbers are zeros: they may share them, so that a thousand
/// networks fit.
std::span<float> shared_zeros(std::int64_t count) {
  static std::vector<float> zeros(count);
  return zeros;
}

std::optional<SumWay> way_of(const std::string& name) {
  for (const SumWay way : {SumWay::kGather, SumWay::kSlices, SumWay::kHalves, SumWay::kWhole})
    if (name == name_of(way)) return way;
  if (name != "auto") fail(name, " is no way of bucket_sum.h");
  return std::nullopt;
}

/// One rank's steps.
class Replay {
 public:
  Replay(Communicator& ranks, const Schedule& schedule, const Options& options)
      : ranks_(ranks),
        schedule_(schedule),
        options_(options),
        row_(shared_zeros(schedule.floats())),
        sums_(ranks, {.floats = options.bucket,
                      .way = options.way == "allreduce" ? std::nullopt : way_of(options.way),
                      .interval = {}}) {}

  void step() {
    now_ = 0;
    if (options_.way == "allreduce") return step_with_allreduce();
    std::int64_t first = 0;
    for (const Schedule::HandOver& tensor : schedule_.tensors) {
      compute_until(tensor.seconds);
      charge_copies(first, tensor.floats);
      sums_.hand_over(row_.subspan(first, tensor.floats));
      first += tensor.floats;
    }
    compute_until(schedule_.backward);
    sums_.flush();
    combine([&] { sums_.progress(); });
    sums_.finish();
    first = 0;
    for (const Schedule::HandOver& tensor : schedule_.tensors) {
      charge_copies(first, tensor.floats);
      first += tensor.floats;
    }
    compute_until(schedule_.step);
  }

 private:
  void compute_until(double time) {
    for (; options_.interval > 0 && time - now_ > options_.interval; now_ += options_.interval) {
      smpi_execute_benched(options_.interval + kBeatSeconds);
      sums_.progress();
    }
    smpi_execute_benched(time - now_);
    now_ = time;
  }

  /// Stretches that fill a bucket are summed where they are.
  void charge_copies(std::int64_t first, std::int64_t floats) {
    const std::int64_t bucket = options_.bucket;
    const std::int64_t whole = std::max<std::int64_t>((first + floats) / bucket - (first + bucket - 1) / bucket, 0);
    smpi_execute_benched(options_.copy * static_cast<double>(floats - whole * bucket));
  }

  void combine(const std::function<void()>& meanwhile) {
    std::vector<ShardStatistic> statistics(schedule_.statistics);
    combine_statistics(ranks_, statistics, meanwhile);
  }

  void step_with_allreduce() {
    compute_until(schedule_.backward);
    MPI_Allreduce(MPI_IN_PLACE, row_.data(), static_cast<int>(row_.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    // Whatever the algorithm, each number that arrives on the way to the sum is added, as many as a rank has.
    smpi_execute_benched((options_.add + options_.receive * 8) * static_cast<double>(row_.size()));
    combine([] {});
    compute_until(schedule_.step);
  }

  Communicator& ranks_;
  const Schedule& schedule_;
  const Options& options_;
  std::span<float> row_;
  TensorSums sums_;
  double now_ = 0;
};

void replay(Communicator& ranks, const Schedule& schedule, const Options& options) {
  Replay replay(ranks, schedule, options);
  replay.step();
  wait_for(*ranks.barrier());
  const double begin = MPI_Wtime();
  for (int step = 0; step < kSteps; ++step) replay.step();
  // Without the barrier, whose own time grows with the number of ranks.
  const double seconds = (MPI_Wtime() - begin) / kSteps;
  wait_for(*ranks.barrier());
  if (ranks.rank() == 0) std::printf("%.9f %.9f\n", schedule.step, seconds);
}

}  // namespace
}  // namespace miniqat::distributed

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: replay SCHEDULE [way=] [bucket=] [add=] [copy=] [receive=] [interval=]\n");
    return 2;
  }
  try {
    using namespace miniqat::distributed;
    const Schedule schedule = read_schedule(words[1]);
    const Options options = read_options(count - 2, words + 2);
    ChargedCommunicator ranks(std::unique_ptr<Communicator>(miniqat_mpi_open()), options);
    replay(ranks, schedule, options);
    ranks.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 1;
  }
}
