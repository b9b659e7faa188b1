#include "core/team/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/platform/floating_point_control.h"
#include "core/platform/interruption.h"
#include "core/platform/openmp.h"
#include "core/team/spin_wait.h"
#include "core/team/team_load.h"
#include "core/text/error.h"

namespace miniqat {
namespace {

using SpinClock = std::chrono::steady_clock;

constexpr int kMostParts = 1024;
/// How long a worker sleeps while the calling thread is alone, before it looks whether that one is stuck.
constexpr std::chrono::milliseconds kRescue(100);

/// The switches of floating point arithmetic, without the flags that it raises.
class FloatingPoint {
 public:
  static unsigned of_this_thread() { return floating_point_control() & ~kRaisedFlags; }
  static void set(unsigned switches) {
    const unsigned all = floating_point_control();
    if ((all & ~kRaisedFlags) != switches) set_floating_point_control((all & kRaisedFlags) | switches);
  }
};

/// OMP_PROC_BIND ties the main thread to one place, and threads that it starts would share that with it.
void move_to_place_of_worker(int worker) {
  const int places = omp_get_num_places();
  if (omp_get_proc_bind() == 0 || places == 0) return;
  const int place = (std::max(omp_get_place_num(), 0) + worker) % places;
  std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(place)));
  omp_get_place_proc_ids(place, processors.data());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int processor : processors)
    if (processor < CPU_SETSIZE) CPU_SET(processor, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

double cpu_seconds_of(pthread_t thread) {
  clockid_t clock{};
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

thread_local bool is_in_team = false;
thread_local bool is_worker = false;
thread_local TeamPlace place;

}  // namespace

/// Regions are numbered. A part is begun by whoever first writes the region's number over an older one.
class Team {
 public:
  ~Team();
  void run(int parts, TeamBody body, void* data, TeamParts kind);
  void barrier();
  TeamLoad& load() { return load_; }

 private:
  struct alignas(64) Worker {
    std::thread thread;
    std::atomic<std::uint32_t> sleeps = 0;
    double cpu_seconds_before_wait = 0;
  };
  /// The number of the region above the number of its parts; a part less than none says that the workers shall end.
  static constexpr int kPartBits = 16;
  static constexpr std::uint64_t kEnd = (1 << kPartBits) - 1;

  void start_workers(int parts);
  bool computes_alone(int parts, TeamParts kind);
  void work(Worker& self, int index);
  std::uint64_t wait_for_next(Worker& self, std::uint64_t seen);
  void wake_workers(int parts);
  void run_parts(std::uint64_t region, int parts, int first);
  void run_part(int part, int parts);
  void run_in_openmp(int parts);
  void wait_for_parts(int parts);

  class CoreWait;

  alignas(64) std::atomic<std::uint64_t> current_ = 0;
  TeamBody body_ = nullptr;
  void* data_ = nullptr;
  unsigned switches_ = 0;
  std::atomic<int> sleepers_ = 0;
  /// The current region is none for the workers.
  std::atomic<bool> is_alone_ = false;
  TeamLoad load_;

  alignas(64) std::array<std::atomic<std::uint64_t>, kMostParts> begun_{};
  alignas(64) std::atomic<std::uint32_t> ended_ = 0;
  std::atomic<std::uint32_t> caller_sleeps_ = 0;

  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  std::atomic<std::uint32_t> barriers_ = 0;
  std::atomic<int> barrier_sleepers_ = 0;

  std::mutex failure_mutex_;
  int failed_part_ = INT_MAX;
  std::exception_ptr failure_;

  std::vector<std::unique_ptr<Worker>> workers_;
};

namespace {

thread_local Team* team_of_region = nullptr;
thread_local double waited_seconds = 0;

/// The workers of the calling thread. A child of fork() has none of them, and begins anew.
class OwnTeam {
 public:
  ~OwnTeam() { delete team_; }
  Team& get() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { own_team().team_ = nullptr; });
    static_cast<void>(registered);
    if (team_ == nullptr) team_ = new Team;
    return *team_;
  }
  static OwnTeam& own_team() {
    thread_local OwnTeam own;
    return own;
  }

 private:
  Team* team_ = nullptr;
};

/// The calling thread computes `part` while one lives.
class InPart {
 public:
  InPart(Team* team, int part, int parts) : before_in_(is_in_team), before_(place), before_team_(team_of_region) {
    is_in_team = true;
    place = {.part = part, .parts = parts};
    team_of_region = team;
  }
  ~InPart() {
    is_in_team = before_in_;
    place = before_;
    team_of_region = before_team_;
  }
  InPart(const InPart&) = delete;
  InPart& operator=(const InPart&) = delete;

 private:
  bool before_in_;
  TeamPlace before_;
  Team* before_team_;
};

}  // namespace

Team::~Team() {
  current_ = ((current_ >> kPartBits) + 1) << kPartBits | kEnd;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker->sleeps.exchange(0) != 0) wake_one(worker->sleeps);
    worker->thread.join();
  }
}

void Team::start_workers(int parts) {
  while (static_cast<int>(workers_.size()) + 1 < parts) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    try {
      worker.thread = std::thread([this, &worker, index = static_cast<int>(workers_.size())] { work(worker, index); });
    } catch (const std::system_error& error) {
      workers_.pop_back();
      fail("cannot start ", parts, " threads: ", error.what());
    }
  }
}

/// Worker `index` begins with part `index`. One beyond the parts of a region stays out of it.
void Team::work(Worker& self, int index) {
  is_worker = true;
  // They compute parts of oneDNN's kernels, too.
  const BlockedSignals blocked;
  move_to_place_of_worker(index);
  std::uint64_t seen = 0;
  for (;;) {
    seen = wait_for_next(self, seen);
    const auto parts = static_cast<int>(seen & kEnd);
    if (parts == static_cast<int>(kEnd)) return;
    if (index < parts) run_parts(seen >> kPartBits, parts, index);
  }
}

std::uint64_t Team::wait_for_next(Worker& self, std::uint64_t seen) {
  std::uint64_t now = seen, before = seen;
  const auto has_changed = [&] {
    now = current_.load();
    return now != seen && !is_alone_;
  };
  if (spin_until(has_changed)) return now;
  // Either the caller sees that this one sleeps, or this one sees the next region.
  ++sleepers_;
  for (self.sleeps = 1; !has_changed(); self.sleeps = 1) {
    if (!is_alone_)
      sleep_while(self.sleeps, 1);
    else if (!sleep_while(self.sleeps, 1, kRescue) && now != seen && std::exchange(before, now) == now)
      break;
  }
  --sleepers_;
  self.sleeps = 0;
  return now;
}

void Team::wake_workers(int parts) {
  if (sleepers_ == 0) return;
  for (int i = 1; i < parts; ++i) {
    Worker& worker = *workers_[static_cast<std::size_t>(i) - 1];
    if (worker.sleeps == 1 && worker.sleeps.exchange(0) == 1) wake_one(worker.sleeps);
  }
}

/// Workers that sleep learn that they are to look after it, and those that spin see it.
bool Team::computes_alone(int parts, TeamParts kind) {
  const bool alone = kind == TeamParts::kIndependent && (team_choice() == TeamChoice::kAlone || load_.is_alone());
  if (alone && !is_alone_.exchange(true)) wake_workers(parts);
  if (!alone) is_alone_ = false;
  return alone;
}

void Team::run(int parts, TeamBody body, void* data, TeamParts kind) {
  if (parts > kMostParts) fail("a region has at most ", kMostParts, " parts, not ", parts);
  const bool in_openmp = team_choice() == TeamChoice::kOpenMp;
  if (!in_openmp) start_workers(parts);
  body_ = body;
  data_ = data;
  switches_ = FloatingPoint::of_this_thread();
  ended_ = 0;
  if (in_openmp) {
    run_in_openmp(parts);
  } else {
    const bool alone = computes_alone(parts, kind);
    const std::uint64_t region = (current_ >> kPartBits) + 1;
    current_ = region << kPartBits | static_cast<std::uint64_t>(parts);
    if (!alone) wake_workers(parts);
    run_parts(region, parts, 0);
    wait_for_parts(parts);
  }
  if (failed_part_ == INT_MAX) return;
  failed_part_ = INT_MAX;
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Runs what nobody has begun, `first` first.
void Team::run_parts(std::uint64_t region, int parts, int first) {
  for (int i = 0; i < parts; ++i) {
    const int part = (first + i) % parts;
    std::uint64_t last = begun_[static_cast<std::size_t>(part)];
    // A thread that comes late meets numbers of later regions, too.
    if (last < region && begun_[static_cast<std::size_t>(part)].compare_exchange_strong(last, region))
      run_part(part, parts);
  }
}

void Team::run_part(int part, int parts) {
  {
    const InPart in_part(this, part, parts);
    FloatingPoint::set(switches_);
    try {
      body_(data_, part);
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      if (part < failed_part_) failure_ = std::current_exception();
      failed_part_ = std::min(failed_part_, part);
    }
  }
  if (static_cast<int>(++ended_) == parts && caller_sleeps_ != 0) wake_one(ended_);
}

void Team::run_in_openmp(int parts) {
  struct Whole {
    Team& team;
    int parts;
  } whole{*this, parts};
  const auto region = [](void* data) {
    const Whole& all = *static_cast<const Whole*>(data);
    // In this part only: oneDNN plans for so many threads, which would otherwise wait for others without end.
    omp_set_num_threads(1);
    all.team.run_part(omp_get_thread_num(), all.parts);
  };
  // OpenMP's threads begin here, and compute oneDNN's kernels later.
  const BlockedSignals blocked;
  GOMP_parallel(region, &whole, static_cast<unsigned>(parts), 0);
}

/// A wait of the thread that called the region. It adds to waited_seconds what the awaited thread cannot have used.
class Team::CoreWait {
 public:
  CoreWait(Team& team, int parts)
      : load_(team.load_),
        workers_(std::span(team.workers_).first(static_cast<std::size_t>(parts) - 1)),
        start_(SpinClock::now()) {
    for (const auto& worker : workers_)
      worker->cpu_seconds_before_wait = cpu_seconds_of(worker->thread.native_handle());
  }
  ~CoreWait() {
    double used = 0;
    for (const auto& worker : workers_)
      used = std::max(used, cpu_seconds_of(worker->thread.native_handle()) - worker->cpu_seconds_before_wait);
    const SpinClock::time_point end = SpinClock::now();
    const double lost = std::max(0.0, std::chrono::duration<double>(end - start_).count() - used);
    // The time alone counts as a whole.
    if (!load_.is_alone()) waited_seconds += lost;
    load_.add_wait(end, std::chrono::duration_cast<SpinClock::duration>(std::chrono::duration<double>(lost)),
                   static_cast<int>(workers_.size()) + 1);
  }
  CoreWait(const CoreWait&) = delete;
  CoreWait& operator=(const CoreWait&) = delete;

 private:
  TeamLoad& load_;
  std::span<const std::unique_ptr<Worker>> workers_;
  SpinClock::time_point start_;
};

void Team::wait_for_parts(int parts) {
  const auto all_ended = [&] { return static_cast<int>(ended_) == parts; };
  if (spin_until(all_ended)) return;
  const CoreWait wait(*this, parts);
  caller_sleeps_ = 1;
  for (std::uint32_t seen = ended_; static_cast<int>(seen) != parts; seen = ended_) sleep_while(ended_, seen);
  caller_sleeps_ = 0;
}

void Team::barrier() {
  const std::uint32_t before = barriers_;
  if (static_cast<int>(++arrived_) == place.parts) {
    arrived_ = 0;
    ++barriers_;
    if (barrier_sleepers_ != 0) wake_all(barriers_);
    return;
  }
  const auto has_passed = [&] { return barriers_ != before; };
  if (spin_until(has_passed)) return;
  std::optional<CoreWait> wait;
  if (!is_worker && team_choice() != TeamChoice::kOpenMp) wait.emplace(*this, place.parts);
  ++barrier_sleepers_;
  while (!has_passed()) sleep_while(barriers_, before);
  --barrier_sleepers_;
}

void run_in_team(int parts, TeamBody body, void* data, TeamParts kind) {
  OwnTeam::own_team().get().run(parts, body, data, kind);
}

bool in_team() { return is_in_team; }
TeamPlace team_place() { return place; }
void team_barrier() {
  if (place.parts > 1) team_of_region->barrier();
}

NestedRegion::NestedRegion() : before_(std::exchange(place, {})) {}
NestedRegion::~NestedRegion() { place = before_; }

namespace {
thread_local TeamParts onednn_parts = TeamParts::kMayWait;
}

IndependentRegions::IndependentRegions() : before_(std::exchange(onednn_parts, TeamParts::kIndependent)) {}
IndependentRegions::~IndependentRegions() { onednn_parts = before_; }
TeamParts parts_of_onednn() { return onednn_parts; }

double seconds_without_cores() {
  const TeamLoad::Clock::duration alone = OwnTeam::own_team().get().load().alone_until(TeamLoad::Clock::now());
  return waited_seconds + std::chrono::duration<double>(alone).count();
}

void forget_lost_cores() { OwnTeam::own_team().get().load().forget(TeamLoad::Clock::now()); }

}  // namespace miniqat
