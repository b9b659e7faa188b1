#include "benchmarks/suite/steps/bench_loaded.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "benchmarks/suite/measure/rounds.h"
#include "benchmarks/suite/steps/noise_training.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/team.h"

namespace miniqat::benchmarks {
namespace {

constexpr unsigned kMostSeconds = 600;

/// In a child of fork(): only what a signal handler may do.
[[noreturn]] void be_busy(pid_t parent, bool own_session) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) std::signal(signal, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kMostSeconds);
  if (getppid() != parent) _exit(0);
  if (own_session) setsid();
  for (std::atomic<unsigned> turns = 0;; ++turns) {
  }
}

constexpr std::int64_t kBatch = 128;

/// Images/s over the given time, the waits of whole time slices included.
double speed(NoiseTraining& training, int threads, double seconds, const std::function<void()>& check) {
  set_thread_count(threads);
  // Of the neighbours that are gone.
  forget_lost_cores();
  const auto step = [&] {
    training.step();
    check();
  };
  // May compile.
  step();
  const auto start = std::chrono::steady_clock::now();
  double spent = 0;
  std::int64_t images = 0;
  while (spent < seconds) {
    step();
    images += kBatch;
    spent = seconds_since(start);
  }
  return static_cast<double>(images) / spent;
}

struct Neighbourhood {
  const char* name;
  bool is_busy;
  bool own_sessions;
};
constexpr std::array<Neighbourhood, 3> kNeighbourhoods = {
    {{"none", false, false}, {"same session", true, false}, {"own sessions", true, true}}};

/// Adds a round to the average of those before it.
void add_round(Disturbance& all, const Disturbance& round) {
  const double seconds = all.seconds + round.seconds, share = round.seconds / seconds;
  all.others += share * (round.others - all.others);
  all.switches += share * (round.switches - all.switches);
  all.idle_cores = round.idle_cores;
  all.seconds = seconds;
}

}  // namespace

BusyNeighbours::BusyNeighbours(bool own_sessions) {
  const pid_t parent = getpid();
  for (int i = 0; i < available_cores(); ++i) {
    const pid_t process = fork();
    if (process == 0) be_busy(parent, own_sessions);
    if (process > 0) processes_.push_back(process);
  }
  if (processes_.empty()) fail("cannot start processes: ", std::strerror(errno));
}

BusyNeighbours::~BusyNeighbours() {
  for (const pid_t process : processes_) kill(process, SIGKILL);
  for (const pid_t process : processes_)
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::vector<LoadedSpeed> bench_loaded(const std::string& model, double budget_seconds,
                                      const std::function<void()>& check) {
  constexpr int kRounds = 5;
  const double seconds = budget_seconds / (kRounds * 2 * kNeighbourhoods.size());
  const int threads = thread_count();
  NoiseTraining training(models::find_model(model), quantize::RewriteOptions{.bn_fold = quantize::BnFold::kSingle},
                         kBatch);
  std::vector<LoadedSpeed> speeds;
  for (const Neighbourhood& all : kNeighbourhoods)
    speeds.push_back({.model = model,
                      .neighbours = all.name,
                      .batch = kBatch,
                      .threads = threads,
                      .all_threads = {},
                      .one_thread = {},
                      .of_bar = {},
                      .disturbance = {}});
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t k = 0; k < kNeighbourhoods.size(); ++k) {
      const bool is_busy = kNeighbourhoods[k].is_busy;
      const QuietWatch watch;
      std::optional<BusyNeighbours> neighbours;
      if (is_busy) neighbours.emplace(kNeighbourhoods[k].own_sessions);
      const double all = speed(training, threads, seconds, check), one = speed(training, 1, seconds, check);
      speeds[k].all_threads.push_back(all);
      speeds[k].one_thread.push_back(one);
      if (is_busy) speeds[k].of_bar.push_back(all / std::max(speeds[0].all_threads.back() / 2, one));
      // The processor time of a child counts from its end on.
      neighbours.reset();
      set_thread_count(threads);
      Disturbance disturbance = watch.since();
      if (is_busy) disturbance.switches = 0;
      add_round(speeds[k].disturbance, disturbance);
    }
  return speeds;
}

}  // namespace miniqat::benchmarks
