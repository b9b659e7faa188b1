// The exchange of one training step, run by SimGrid's SMPI on a network that does not exist. The code of the sums is
// miniqat's own (tensor_sums.cpp and below, over mpi_communicator.cpp); only computing is replaced by its time. All
// numbers are zeros. How to build and run it is in docs/scale.md:
//
//   smpirun -platform P.xml -hostfile HOSTS -np N replay SCHEDULE WAY BUCKET_FLOATS ADD_SECONDS COPY_SECONDS
//   POLL_SECONDS
//
// SCHEDULE is what benchmarks/bench_schedule prints: lines `tensor SECONDS FLOATS` (a gradient is handed over so long
// after the step's begin), `backward SECONDS` (its end), `step SECONDS` (the optimizer's end) and `statistics COUNT`.
// WAY is auto or a name of bucket_sum.h; ADD_SECONDS and COPY_SECONDS are for one float32. POLL_SECONDS: the buckets
// move on so often while backward computes, as a thread for them would see to; 0 as today, when a gradient is handed
// over. Prints the seconds of a step without and with the other ranks.

#include <mpi.h>
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "distributed/combine_statistics.h"
#include "distributed/mpi_communicator.h"
#include "distributed/tensor_sums.h"

namespace miniqat::distributed {
namespace {

constexpr int kSteps = 3;

struct Schedule {
  struct HandOver {
    double seconds;
    std::int64_t floats;
  };
  std::vector<HandOver> tensors;
  double backward = 0;
  double step = 0;
  std::int64_t statistics = 0;
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
    } else {
      fail(path, ": ", word, " is no word of a schedule");
    }
  }
  return schedule;
}

/// What the arrival of data costs: the adding that follows.
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

/// MPI with the time of adding: each number that arrives in an exchange of parts is added once.
class ChargedCommunicator : public Communicator {
 public:
  ChargedCommunicator(std::unique_ptr<Communicator> inner, double add) : inner_(std::move(inner)), add_(add) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Communicator> channel() override {
    return std::make_unique<ChargedCommunicator>(inner_->channel(), add_);
  }
  std::unique_ptr<Transfer> all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    return charged(inner_->all_to_all(out, in), in.size());
  }
  std::unique_ptr<Transfer> all_gather(std::span<const std::byte> out, std::span<std::byte> in) override {
    return charged(inner_->all_gather(out, in), in.size());
  }
  std::unique_ptr<Transfer> swap(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
    return charged(inner_->swap(partner, out, in), in.size());
  }
  void broadcast(std::span<std::byte> data, int root) override { inner_->broadcast(data, root); }
  void barrier() override { inner_->barrier(); }
  void abort(int status) override { inner_->abort(status); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<Transfer> charged(std::unique_ptr<Transfer> inner, std::size_t bytes) const {
    return std::make_unique<ChargedTransfer>(std::move(inner), add_ * static_cast<double>(bytes) / sizeof(float));
  }

  std::unique_ptr<Communicator> inner_;
  double add_;
};

std::optional<SumWay> way_of(const std::string& name) {
  for (const SumWay way : {SumWay::kGather, SumWay::kSlices, SumWay::kHalves, SumWay::kWhole})
    if (name == name_of(way)) return way;
  if (name != "auto") fail(name, " is no way of bucket_sum.h");
  return std::nullopt;
}

void one_step(Communicator& ranks, const Schedule& schedule, TensorSums& sums, std::span<float> zeros, double copy,
              double poll) {
  double now = 0;
  const auto compute_until = [&](double time) {
    for (; poll > 0 && time - now > poll; now += poll) {
      smpi_execute_benched(poll);
      sums.progress();
    }
    smpi_execute_benched(time - now);
    now = time;
  };
  for (const Schedule::HandOver& tensor : schedule.tensors) {
    compute_until(tensor.seconds);
    smpi_execute_benched(copy * static_cast<double>(tensor.floats));
    sums.hand_over(zeros.first(tensor.floats));
  }
  compute_until(schedule.backward);
  sums.flush();
  std::vector<ShardStatistic> statistics(schedule.statistics);
  combine_statistics(ranks, statistics, [&] { sums.progress(); });
  sums.finish();
  for (const Schedule::HandOver& tensor : schedule.tensors)
    smpi_execute_benched(copy * static_cast<double>(tensor.floats));
  compute_until(schedule.step);
}

void replay(Communicator& ranks, char** arguments) {
  const Schedule schedule = read_schedule(arguments[1]);
  const double copy = std::atof(arguments[5]), poll = std::atof(arguments[6]);
  std::int64_t longest = 0;
  for (const Schedule::HandOver& tensor : schedule.tensors) longest = std::max(longest, tensor.floats);
  std::vector<float> zeros(longest);
  TensorSums sums(ranks, {.floats = std::atoll(arguments[3]), .way = way_of(arguments[2]), .interval = {}});
  one_step(ranks, schedule, sums, zeros, copy, poll);
  ranks.barrier();
  const double begin = MPI_Wtime();
  for (int step = 0; step < kSteps; ++step) one_step(ranks, schedule, sums, zeros, copy, poll);
  ranks.barrier();
  if (ranks.rank() == 0) std::printf("%.9f %.9f\n", schedule.step, (MPI_Wtime() - begin) / kSteps);
}

}  // namespace
}  // namespace miniqat::distributed

int main(int count, char** arguments) {
  if (count != 7) {
    std::fprintf(stderr, "usage: replay SCHEDULE WAY BUCKET_FLOATS ADD_SECONDS COPY_SECONDS POLL_SECONDS\n");
    return 2;
  }
  try {
    miniqat::distributed::ChargedCommunicator ranks(
        std::unique_ptr<miniqat::distributed::Communicator>(miniqat_mpi_open()), std::atof(arguments[4]));
    miniqat::distributed::replay(ranks, arguments);
    ranks.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 1;
  }
}
