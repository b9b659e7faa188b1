#include "core/threads/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/platform/floating_point_control.h"
#include "core/platform/openmp.h"
#include "core/text/error.h"
#include "tests/core/all_threads.h"

namespace miniqat::parallel_test {
namespace {

using testing::with_all_threads;

constexpr unsigned kFlushBits = kFlushDenormals;

unsigned denormal_switches() { return floating_point_control() & kFlushBits; }

void allow_denormals() { set_floating_point_control(floating_point_control() & ~kFlushBits); }

/// The switches of every thread of a loop over `count` parts.
std::set<unsigned> denormal_switches_of_workers(int count) {
  std::set<unsigned> switches;
  std::mutex mutex;
  with_all_threads(count, [&](int) {
    const std::scoped_lock lock(mutex);
    switches.insert(denormal_switches());
  });
  return switches;
}

class ParallelTest : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(before_); }

 private:
  int before_ = thread_count();
};

/// Where the environment or the first call matters, the test runs in a fresh process and reports by its exit status.
class FreshProcessTest : public ::testing::Test {
 protected:
  FreshProcessTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void expect_count_under(const char* omp_num_threads, int expected) {
  ::setenv("OMP_NUM_THREADS", omp_num_threads, 1);
  EXPECT_EXIT(std::_Exit(thread_count()), ::testing::ExitedWithCode(expected), "") << '"' << omp_num_threads << '"';
  ::unsetenv("OMP_NUM_THREADS");
}

TEST_F(FreshProcessTest, EnvironmentLowersTheDefaultCount) {
  const int cores = available_cores();
  expect_count_under("1", 1);
  expect_count_under("1,4", 1);
  expect_count_under("2", std::min(2, cores));
  expect_count_under("1000000", cores);
}

TEST_F(FreshProcessTest, NonsenseInTheEnvironmentIsIgnored) {
  for (const char* nonsense : {"", "0", "-3", "abc", "1x", "99999999999999999999", "1.5"})
    expect_count_under(nonsense, available_cores());
}

TEST_F(FreshProcessTest, AScopeFlushesDenormalsInWorkersThatExistAlreadyAndGivesThemBack) {
  EXPECT_EXIT(
      {
        const int count = available_cores();
        const std::set<unsigned> before = denormal_switches_of_workers(count);
        auto scope = std::make_unique<ComputeScope>();
        thread_count();
        const std::set<unsigned> inside = denormal_switches_of_workers(count);
        scope.reset();
        const std::set<unsigned> after = denormal_switches_of_workers(count);
        const std::set<unsigned> off{0};
        const std::set<unsigned> on{kFlushBits};
        std::_Exit(before == off && inside == on && after == off ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(FreshProcessTest, AffinityMaskLimitsTheCores) {
  EXPECT_EXIT(
      {
        cpu_set_t mask;
        ::sched_getaffinity(0, sizeof mask, &mask);
        int first = 0;
        while (!CPU_ISSET(first, &mask)) ++first;
        CPU_ZERO(&mask);
        CPU_SET(first, &mask);
        ::sched_setaffinity(0, sizeof mask, &mask);
        std::_Exit(available_cores() * 10 + thread_count());
      },
      ::testing::ExitedWithCode(11), "");
}

TEST_F(ParallelTest, SetThreadCountIsSeenByUsAndByOpenMp) {
  for (const int count : {3, 1, 2}) {
    set_thread_count(count);
    EXPECT_EQ(thread_count(), count);
    const ComputeScope scope;
    EXPECT_EQ(thread_count(), count);
    EXPECT_EQ(omp_get_max_threads(), count);
  }
}

TEST_F(ParallelTest, AScopeLeavesTheThreadAsItWas) {
  set_thread_count(3);
  allow_denormals();
  const int openmp = omp_get_max_threads(), dynamic = omp_get_dynamic();
  {
    const ComputeScope scope;
    EXPECT_EQ(denormal_switches(), kFlushBits);
    {
      const ComputeScope inner;
      EXPECT_EQ(thread_count(), 3);
    }
    EXPECT_EQ(denormal_switches(), kFlushBits);
    EXPECT_EQ(denormal_switches_of_workers(3), std::set<unsigned>{kFlushBits});
  }
  EXPECT_EQ(denormal_switches(), 0u);
  EXPECT_EQ(denormal_switches_of_workers(3), std::set<unsigned>{0});
  EXPECT_EQ(omp_get_max_threads(), openmp);
  EXPECT_EQ(omp_get_dynamic(), dynamic);
}

TEST_F(ParallelTest, AThreadThatFlushedBeforeStillDoes) {
  const unsigned before = floating_point_control();
  set_floating_point_control(before | kFlushBits);
  {
    const ComputeScope scope;
    thread_count();
  }
  EXPECT_EQ(denormal_switches(), kFlushBits);
  set_floating_point_control(before);
}

TEST_F(ParallelTest, LoopsFlushDenormalsWithoutAScope) {
  set_thread_count(2);
  allow_denormals();
  std::atomic<int> flushing = 0;
  for (const std::int64_t n : {1, 2})
    parallel_for(n, 1, [&](std::int64_t, std::int64_t) { flushing += denormal_switches() == kFlushBits ? 1 : 0; });
  EXPECT_EQ(flushing, 3);
  EXPECT_EQ(denormal_switches(), 0u);
}

TEST_F(ParallelTest, AScopeKeepsItsThreadCountWhateverAnotherThreadSets) {
  set_thread_count(2);
  {
    const ComputeScope scope;
    EXPECT_EQ(thread_count(), 2);
    std::thread([] { set_thread_count(3); }).join();
    EXPECT_EQ(thread_count(), 2);
    EXPECT_EQ(omp_get_max_threads(), 2);
  }
  EXPECT_EQ(thread_count(), 3);
}

TEST_F(ParallelTest, RefusesCountsOutOfRangeAndKeepsTheOldOne) {
  set_thread_count(2);
  for (const int bad : {0, -1, 1025, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()})
    EXPECT_THROW(set_thread_count(bad), Error);
  EXPECT_EQ(thread_count(), 2);
}

TEST_F(ParallelTest, WorkersAddedLaterFlushDenormals) {
  const ComputeScope scope;
  set_thread_count(1);
  thread_count();
  set_thread_count(4);
  EXPECT_EQ(denormal_switches_of_workers(4), std::set<unsigned>{kFlushBits});
}

TEST_F(ParallelTest, EveryThreadThatAsksIsPreparedWithItsOwnPool) {
  set_thread_count(3);
  unsigned switches = 0;
  int max_threads = 0;
  std::set<unsigned> workers;
  std::thread([&] {
    allow_denormals();
    const ComputeScope scope;
    thread_count();
    switches = denormal_switches();
    max_threads = omp_get_max_threads();
    workers = denormal_switches_of_workers(3);
  }).join();
  EXPECT_EQ(switches, kFlushBits);
  EXPECT_EQ(max_threads, 3);
  EXPECT_EQ(workers, std::set<unsigned>{kFlushBits});
}

TEST_F(ParallelTest, AskingInsideAParallelRegionDoesNotNest) {
  set_thread_count(2);
  std::atomic<int> entered = 0;
  const auto region = [](void* data) {
    auto& sum = *static_cast<std::atomic<int>*>(data);
    parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) { sum += static_cast<int>(end - begin); });
  };
  GOMP_parallel(region, &entered, 2, 0);
  EXPECT_EQ(entered, 2000);
}

TEST_F(ParallelTest, ParallelForCoversEveryElementOnceInAtMostThePromisedParts) {
  for (const int threads : {1, 2, 3, 5}) {
    set_thread_count(threads);
    for (const std::int64_t n : {1, 2, 7, 100, 1001}) {
      for (const std::int64_t grain : {1, 3, 100, 5000}) {
        std::vector<int> visits(static_cast<std::size_t>(n));
        std::set<std::int64_t> begins;
        std::mutex mutex;
        parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          const std::scoped_lock lock(mutex);
          begins.insert(begin);
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1));
        EXPECT_EQ(begins.size(), static_cast<std::size_t>(parallel_parts(n, grain)));
        EXPECT_LE(parallel_parts(n, grain), threads);
      }
    }
  }
}

TEST_F(ParallelTest, AnEmptyRangeCallsNothing) {
  parallel_for(0, 1, [](std::int64_t, std::int64_t) { FAIL(); });
  parallel_for(-5, 1, [](std::int64_t, std::int64_t) { FAIL(); });
}

}  // namespace
}  // namespace miniqat::parallel_test
