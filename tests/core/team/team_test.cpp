#include "core/team/team.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/kernels/onednn_matrix.h"
#include "core/platform/openmp.h"
#include "core/threads/parallel.h"
#include "tests/busy_threads.h"
#include "tests/core/all_threads.h"

namespace miniqat::team_test {
namespace {

template <class Body>
void in_parts(int parts, const Body& body, TeamParts kind = TeamParts::kMayWait) {
  run_in_team(
      parts, [](void* erased, int part) { (*static_cast<const Body*>(erased))(part); },
      const_cast<void*>(static_cast<const void*>(&body)), kind);
}

/// The calling thread waits long for workers that use no core, as if others had theirs.
void lose_workers(int parts) {
  const std::thread::id caller = std::this_thread::get_id();
  in_parts(parts, [&](int) {
    team_barrier();
    if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
}

TEST(Team, EveryPartRunsOnceWhateverTheirNumber) {
  for (int round = 0; round < 300; ++round)
    for (const int parts : {1, 2, 3, 7, 40, 2}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(parts));
      in_parts(parts, [&](int part) {
        EXPECT_TRUE(in_team());
        EXPECT_EQ(team_place().part, part);
        EXPECT_EQ(team_place().parts, parts);
        ++visits[static_cast<std::size_t>(part)];
      });
      for (const std::atomic<int>& count : visits) ASSERT_EQ(count, 1);
    }
  EXPECT_FALSE(in_team());
  EXPECT_EQ(team_place().parts, 1);
}

// A handler must not run where a part of a oneDNN kernel has the stack pointer astray (onednn_test.cpp).
TEST(Team, WorkersLeaveSignalsToTheCaller) {
  const std::thread::id caller = std::this_thread::get_id();
  in_parts(2, [&](int) {
    team_barrier();
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    const int expected = std::this_thread::get_id() == caller && team_choice() == TeamChoice::kOwn ? 0 : 1;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPROF, SIGRTMIN})
      EXPECT_EQ(sigismember(&blocked, signal), expected) << signal;
    for (const int fault : {SIGSEGV, SIGABRT}) EXPECT_EQ(sigismember(&blocked, fault), 0) << fault;
  });
}

TEST(Team, BarriersHoldMoreThreadsThanCores) {
  for (const int parts : {2, 3, 16}) {
    std::atomic<int> arrived = 0;
    std::atomic<int> early = 0;
    in_parts(parts, [&](int) {
      for (int round = 1; round <= 50; ++round) {
        ++arrived;
        team_barrier();
        early += arrived < round * parts ? 1 : 0;
        team_barrier();
      }
    });
    EXPECT_EQ(early, 0);
    EXPECT_EQ(arrived, 50 * parts);
  }
}

// As in oneDNN's gradients of filters: groups of parts wait for one another by flags of their own.
TEST(Team, PartsMayWaitForOthersInGroups) {
  for (int round = 0; round < 100; ++round) {
    std::array<std::atomic<int>, 3> arrived{};
    in_parts(6, [&](int part) {
      std::atomic<int>& group = arrived[static_cast<std::size_t>(part % 3)];
      ++group;
      while (group < 2) std::this_thread::yield();
    });
    for (const std::atomic<int>& group : arrived) EXPECT_EQ(group, 2);
  }
}

TEST(Team, PartsThatNoWorkerBeginsAreTakenOver) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> taken = 0;
  // A worker may be faster.
  for (int round = 0; round < 2000 && taken == 0; ++round) {
    std::atomic<bool> first_ended = false;
    in_parts(2, [&](int part) {
      if (part == 0)
        first_ended = true;
      else if (std::this_thread::get_id() == caller && first_ended)
        ++taken;
    });
  }
  EXPECT_GT(taken, 0) << "the calling thread left all parts to its worker, even those that are over at once";
}

TEST(Team, WaitsForThreadsWithoutACoreAreCounted) {
  const std::thread::id caller = std::this_thread::get_id();
  // Who sleeps uses no core, as who gets none.
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  double before = seconds_without_cores();
  in_parts(2, [&](int) {
    if (std::this_thread::get_id() != caller) sleep();
    team_barrier();
  });
  EXPECT_GT(seconds_without_cores() - before, 0.04) << "at a barrier";
  before = seconds_without_cores();
  in_parts(2, [&](int) {
    team_barrier();
    if (std::this_thread::get_id() != caller) sleep();
  });
  EXPECT_GT(seconds_without_cores() - before, 0.04) << "at the end";
}

TEST(Team, WithoutCoresForWorkersTheCallerComputesAlone) {
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<int> order;
  const auto note = [&](int part) {
    if (std::this_thread::get_id() == caller) order.push_back(part);
  };
  const std::vector<int> all = {0, 1, 2};
  // On a busy machine this thread may come too late, when the workers are asked again.
  for (int round = 0; round < 20 && order != all; ++round) {
    lose_workers(3);
    order.clear();
    in_parts(3, note, TeamParts::kIndependent);
  }
  EXPECT_EQ(order, all);
  // Parts that may wait still have a thread each.
  std::atomic<int> at_barrier = 0;
  in_parts(3, [&](int) {
    ++at_barrier;
    team_barrier();
    EXPECT_EQ(at_barrier, 3);
  });
  // The workers are asked again, after a while that grows with former losses.
  std::atomic<int> by_workers = 0;
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (by_workers == 0 && std::chrono::steady_clock::now() < last)
    in_parts(
        3, [&](int) { by_workers += std::this_thread::get_id() == caller ? 0 : 1; }, TeamParts::kIndependent);
  EXPECT_GT(by_workers, 0);
}

TEST(Team, PartsThatWaitAgainstTheirWordEndAllTheSame) {
  lose_workers(2);
  const auto begin = std::chrono::steady_clock::now();
  // As oneDNN's do: the calling thread cannot know of them.
  std::atomic<int> arrived = 0;
  const auto wait_for_both = [&](int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  };
  in_parts(2, wait_for_both, TeamParts::kIndependent);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Team, ThrowsWhatTheLowestPartThrewAndGoesOn) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ended = 0;
    try {
      in_parts(5, [&](int part) {
        ++ended;
        if (part >= 2) throw std::runtime_error(std::to_string(part));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "2");
    }
    EXPECT_EQ(ended, 5);
    EXPECT_FALSE(in_team());
  }
}

TEST(Team, LoopsInsidePartsRunThere) {
  std::atomic<int> elements = 0;
  std::atomic<int> elsewhere = 0;
  in_parts(3, [&](int) {
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) {
      elements += static_cast<int>(end - begin);
      elsewhere += std::this_thread::get_id() == here ? 0 : 1;
    });
  });
  EXPECT_EQ(elements, 3000);
  EXPECT_EQ(elsewhere, 0);
}

TEST(Team, AThreadOfItsOwnForEachCallerAtTheSameTime) {
  std::vector<std::thread> callers;
  std::atomic<long> sum = 0;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) in_parts(3, [&](int part) { sum += part; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 300 * 3);
}

TEST(Team, WorkersEndWithTheirCaller) {
  const auto threads = [] {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
    return 0;
  };
  const int before = threads();
  std::thread([] { testing::with_all_threads(9, [](int) {}); }).join();
  EXPECT_LE(threads(), before);
}

TEST(Team, AChildOfForkComputes) {
  in_parts(3, [](int) {});
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::atomic<int> visits = 0;
    in_parts(3, [&](int) { ++visits; });
    testing::with_all_threads(2, [&](int) { ++visits; });
    _exit(visits == 5 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

/// A matrix product large enough for two threads, by oneDNN.
std::vector<float> product() {
  constexpr std::int64_t kSize = 96;
  std::vector<float> a(kSize * kSize), b(a.size()), c(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) / 7, b[i] = static_cast<float>(i % 13);
  onednn::multiply(onednn::Matrix::row_major(a.data(), kSize, kSize), onednn::Matrix::row_major(b.data(), kSize, kSize),
                   c.data());
  return c;
}

/// Of a shared library of this process; "" if there is none.
std::string path_of(const std::string& name) {
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);)
    if (const std::size_t at = line.find('/'); at != std::string::npos && line.find(name, at) != std::string::npos)
      return line.substr(at);
  return "";
}

// clang's regions call a library of its own (libomp), which no part of miniqat uses.
#if defined(_OPENMP) && !defined(__clang__)

int regions_of_openmp(int threads) {
  std::atomic<int> count = 0;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 100; ++i) count += omp_get_num_threads() == threads && !in_team() ? 1 : 0;
  }
  return count;
}

TEST(OpenMpCalls, ProgramsKeepTheirOwnRegions) {
  EXPECT_EQ(regions_of_openmp(3), 100);
  EXPECT_EQ(omp_in_parallel(), 0);
  // In a part of ours there is one thread for them.
  std::atomic<int> iterations = 0;
  in_parts(2, [&](int part) {
#pragma omp parallel num_threads(2)
    {
      EXPECT_EQ(omp_get_num_threads(), 1);
      EXPECT_EQ(omp_get_thread_num(), 0);
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 10; ++i) ++iterations;
    }
    EXPECT_EQ(omp_get_thread_num(), part);
  });
  EXPECT_EQ(iterations, 20);
}

#endif

// What our regions would not know, a region of oneDNN must not ask OpenMP's library for.
TEST(OpenMpCalls, OneDnnCallsNothingElse) {
  const std::string library = path_of("libdnnl");
  ASSERT_NE(library, "");
  FILE* const symbols = popen(("nm -D --undefined-only " + library).c_str(), "r");
  ASSERT_NE(symbols, nullptr);
  std::set<std::string> called;
  char line[4096];
  while (std::fgets(line, sizeof line, symbols) != nullptr) {
    const std::string_view text = line;
    for (const char* start : {" GOMP_", " omp_", " __kmpc_"})
      if (const std::size_t at = text.find(start); at != std::string_view::npos)
        called.emplace(text.substr(at + 1, text.find_first_of("@\n", at) - at - 1));
  }
  // Version 3's graphs of attention call it; nobody here makes graphs of oneDNN.
  called.erase("omp_set_num_threads");
  ASSERT_EQ(pclose(symbols), 0) << "nm, of binutils, lists the symbols";
  const std::set<std::string> known = {"GOMP_barrier",        "GOMP_parallel",      "omp_get_max_threads",
                                       "omp_get_num_threads", "omp_get_thread_num", "omp_in_parallel"};
  EXPECT_EQ(called, known);
}

TEST(OpenMpCalls, OneDnnStartsNoThreadsOfOpenMp) {
  // A fresh thread has neither workers of ours nor of OpenMP: three are ours after this, whoever asks for them.
  const int before = thread_count();
  set_thread_count(4);
  int threads = 0;
  std::thread([&] {
    const auto count = [] {
      std::ifstream file("/proc/self/status");
      for (std::string line; std::getline(file, line);)
        if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
      return 0;
    };
    const int alone = count();
    testing::with_all_threads(4, [](int) {});
    product();
    threads = count() - alone;
  }).join();
  set_thread_count(before);
  EXPECT_EQ(threads, 3);
}

TEST(OpenMpCalls, TheSameProductBesideBusyNeighbours) {
  const int before = thread_count();
  set_thread_count(4);
  const std::vector<float> quiet = product();
  {
    const testing::BusyThreads neighbours;
    for (int round = 0; round < 20; ++round) EXPECT_EQ(product(), quiet);
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace miniqat::team_test
