// Parts of `bench` that need no measurement: cases, roof, counters, quietness, pictures.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/measure/perf_counters.h"
#include "bench/measure/this_machine.h"
#include "bench/operation.h"
#include "bench/results/result_file.h"
#include "bench/results/throughput_plot.h"
#include "bench/roofline.h"
#include "bench/timed_case.h"
#include "bench/training_steps.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::bench::bench_parts_test {
namespace {

/// With 1e9 operations and 1e8 divisions a second and thread.
Roof roof_of(int threads) {
  return {.threads = threads,
          .all_threads = {1e9 * threads, 1e8 * threads},
          .one_thread = {1e9, 1e8},
          .copies = {},
          .own_cache_bytes = 100'000,
          .disturbance = {},
          .note = {}};
}

TEST(BenchCases, AnOperationWithoutAGridStandsThereOnce) {
  const CaseChoice choice{{Operation::kForward, Operation::kBackward}, {4, 8}, {1, 64}};
  std::vector<std::string> texts;
  for (const BenchCase& one : cases_of(choice, 100)) texts.push_back(one.text());
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "memcpy, 100 elements", "read, 100 elements", "forward per tensor, 4 bits, 100 elements",
                       "backward per tensor, 100 elements", "forward per tensor, 8 bits, 100 elements",
                       "forward per channel, 4 bits, 100 elements", "forward per channel, 8 bits, 100 elements"}));
}

TEST(Roof, TheSlowerOfMemoryAndArithmeticBinds) {
  const Roof roof = roof_of(1);
  const OperationCost cost{.copied_bytes = 8, .read_bytes = 4, .operations = 8, .divisions = 1};
  EXPECT_DOUBLE_EQ(least_seconds(cost, 1000, 1, {1, 0.5, 1}, roof), 1.5);
  EXPECT_DOUBLE_EQ(least_seconds(cost, 1000, 1, {1e-9, 1e-9, 1}, roof), 1e-5);
  EXPECT_DOUBLE_EQ(least_seconds({8, 0, 200, 0}, 1000, 1, {1e-9, 1e-9, 1}, roof), 2e-4);
}

TEST(Roof, CountsTheThreadsThatShareTheTensor) {
  const Roof roof = roof_of(4);
  const OperationCost cost{.copied_bytes = 8, .read_bytes = 0, .operations = 8, .divisions = 1};
  EXPECT_DOUBLE_EQ(least_seconds(cost, 1000, 4, {1e-9, 1e-9, 4}, roof), 0.25e-5);
  EXPECT_DOUBLE_EQ(least_seconds(cost, 1000, 2, {1e-9, 1e-9, 4}, roof), 0.5e-5);
  EXPECT_DOUBLE_EQ(least_seconds(cost, 1000, 1, {1e-9, 1e-9, 1}, roof), 1e-5);
  // Bytes in a cache of one's own: a thread moves half of what two move. Memory is shared.
  EXPECT_DOUBLE_EQ(least_seconds(cost, 1000, 1, {1, 1, 2}, roof), 2);
  EXPECT_DOUBLE_EQ(least_seconds(cost, 100'000, 1, {1, 1, 2}, roof), 1);
}

TEST(Roof, ThreadsThatShareACoreHaveItsPeakOnce) {
  Roof roof = roof_of(2);
  roof.one_thread = roof.all_threads;
  EXPECT_EQ(roof.peak_of(1).operations, roof.all_threads.operations);
  EXPECT_EQ(roof.peak_of(2).divisions, roof.all_threads.divisions);
}

TEST(Roof, IsDisturbedByOthers) {
  Roof roof = roof_of(1);
  EXPECT_TRUE(roof.is_quiet());
  EXPECT_EQ(roof.json()["quiet"], true);
  roof.disturbance = {.seconds = 1, .others = 1};
  EXPECT_EQ(roof.json()["quiet"], false);
}

TEST(Roof, MemoryIsWhatNoCacheHolds) {
  const auto machine = [](std::int64_t cache_mib, std::int64_t memory_mib) {
    Machine result;
    result.caches = {{1, 32 << 10}, {3, cache_mib << 20}};
    result.memory_bytes = memory_mib << 20;
    return result;
  };
  EXPECT_EQ(memory_copy_bytes(machine(32, 8192)), std::int64_t{256} << 20);
  EXPECT_EQ(memory_copy_bytes(machine(320, 8192)), std::int64_t{640} << 20);
  EXPECT_EQ(memory_copy_bytes(machine(320, 1024)), std::int64_t{512} << 20);
  EXPECT_EQ(memory_copy_bytes(Machine{}), std::int64_t{256} << 20);
  EXPECT_EQ(cache_note(machine(64, 8192), "x", std::int64_t{128} << 20), "");
  EXPECT_EQ(cache_note(machine(320, 8192), "x", std::int64_t{512} << 20),
            "x (512 MiB) are not out of cache: L3 has 320 MiB\n");
  EXPECT_EQ(cache_note(Machine{}, "x", 1), "");
}

TEST(Machine, CachesAreThoseOfOneCore) {
  const testing::TempDir place;
  const auto write = [&](int index, const char* level, const char* type, const char* size) {
    const std::string folder = "index" + std::to_string(index) + "/";
    std::filesystem::create_directories(place.path() / folder);
    place.write(folder + "level", std::string(level) + "\n");
    place.write(folder + "type", std::string(type) + "\n");
    place.write(folder + "size", std::string(size) + "\n");
  };
  write(0, "1", "Data", "32K");
  write(1, "1", "Instruction", "64K");
  write(2, "2", "Unified", "1M");
  write(3, "3", "Unified", "32768K");
  const std::vector<Cache> caches = data_caches(place.path());
  ASSERT_EQ(caches.size(), 3u);
  EXPECT_EQ(caches[0].bytes, 32 << 10);
  EXPECT_EQ(caches[1].bytes, 1 << 20);
  EXPECT_EQ(caches[2].level, 3);
  EXPECT_EQ(caches[2].bytes, 32 << 20);
}

TEST(Machine, HasTheQuotaOfItsCgroup) {
  Machine machine;
  machine.cpu = "m";
  machine.cores = 4;
  EXPECT_EQ(machine.text().find("m, 4 cores, "), 0u) << machine.text();
  EXPECT_TRUE(machine.json()["cpu_quota"].is_null());
  machine.cpu_quota = 1.5;
  EXPECT_EQ(machine.text().find("m, 4 cores with a quota of 1.5, "), 0u) << machine.text();
  EXPECT_EQ(machine.json()["cpu_quota"], 1.5);
}

TEST(TimedCase, SmallTensorsBelongToOneThread) {
  const NamedKernel ours = our_kernel();
  NamedKernel plain = ours;
  plain.name = "plain";
  plain.functions.set_threads = nullptr;
  NamedKernel own_threads = ours;
  own_threads.name = "own_threads";
  const auto used = [](const BenchCase& what, const NamedKernel* kernel) {
    BenchTensors tensors(what.elements);
    return TimedCase(tensors, what, kernel).threads_used();
  };
  set_thread_count(4);
  for (const NamedKernel* kernel : std::vector<const NamedKernel*>{&ours, &plain}) {
    EXPECT_EQ(used({Operation::kForward, 8, 1, 32'768}, kernel), 1) << kernel->name;
    EXPECT_EQ(used({Operation::kForward, 8, 1, 40'000}, kernel), 2) << kernel->name;
    EXPECT_EQ(used({Operation::kForward, 8, 1, 1'000'000}, kernel), 4) << kernel->name;
  }
  EXPECT_EQ(used({Operation::kMemcpy, 8, 1, 32'768}, nullptr), 1);
  EXPECT_EQ(used({Operation::kBackwardLearned, 8, 1, 40'000}, &ours), 1);
  // A piece has a multiple of lcm(1001, 64) elements.
  EXPECT_EQ(used({Operation::kForward, 8, 1001, 60'000}, &plain), 1);
  EXPECT_EQ(used({Operation::kForward, 8, 1, 1'000}, &own_threads), 4);
  set_thread_count(default_thread_count());
}

TEST(PerfCounters, CountWhatHappens) {
  // Software events are there where the processor's are not.
  const CountedEvent faults{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS};
  const PerfCounters counters(faults, faults);
  if (!counters.fault().empty()) GTEST_SKIP() << counters.fault();
  const auto before = counters.read();
  const std::vector<char> memory(std::size_t{8} << 20, 1);
  const auto after = counters.read();
  ASSERT_TRUE(before && after);
  EXPECT_GE(after->instructions - before->instructions, 1) << memory.size();
}

TEST(PerfCounters, SayWhyThereAreNone) {
  const PerfCounters counters({12345, 0}, {12345, 0});
  EXPECT_NE(counters.fault().find("perf_event_open: "), std::string::npos);
  EXPECT_FALSE(counters.read());
}

TEST(Disturbance, SaysWhatDisturbed) {
  EXPECT_TRUE((Disturbance{.seconds = 1, .others = 0.02, .switches = 10, .drift = 0.01}.reasons().empty()));
  EXPECT_TRUE((Disturbance{.seconds = 0.01, .others = 1}.reasons().empty())) << "the clock ticks too seldom";
  const auto reasons = Disturbance{.seconds = 1, .others = 0.8, .switches = 400, .drift = 0.2}.reasons();
  ASSERT_EQ(reasons.size(), 3u);
  EXPECT_EQ(reasons[0], "others used 0.8 cores");
}

TEST(Disturbance, OthersMayUseAnEighthOfTheIdleCores) {
  const auto is_quiet = [](double others, int idle_cores) {
    return Disturbance{.seconds = 1, .others = others, .idle_cores = idle_cores}.reasons().empty();
  };
  EXPECT_TRUE(is_quiet(1, 63)) << "64 cores, one thread";
  EXPECT_TRUE(is_quiet(7, 63));
  EXPECT_FALSE(is_quiet(9, 63));
  EXPECT_TRUE(is_quiet(1, 8));
  EXPECT_FALSE(is_quiet(1, 1)) << "two cores, one thread";
  EXPECT_FALSE(is_quiet(0.5, 0)) << "64 cores, 64 threads";
}

TEST(PlotAxis, HasTicksWhereTheyAreReadable) {
  const PlotAxis axis({1000, 1e6}, PlotAxis::Ticks::kPowersOfTen);
  EXPECT_EQ(axis.ticks(), (std::vector<double>{1e3, 1e4, 1e5, 1e6}));
  EXPECT_NEAR(axis.place(std::sqrt(1e9)), 0.5, 1e-9);
  EXPECT_EQ((PlotAxis({0.5, 4}, PlotAxis::Ticks::kOneTwoFive).ticks()), (std::vector<double>{0.5, 1, 2}));
  EXPECT_EQ(tick_text(16e6) + tick_text(1e3) + tick_text(0.5), "16M1k0.5");
}

KernelTime row(Operation operation, std::int64_t elements, const std::string& by = "miniqat") {
  KernelTime time;
  time.what = {operation, 8, 1, elements};
  time.by = by;
  time.rounds = {1e-9 * static_cast<double>(elements)};
  return time;
}

TEST(ThroughputPlot, HasLinesCachesAndMemcpy) {
  std::vector<KernelTime> rows;
  for (const std::int64_t elements : {1000, 100'000})
    for (const Operation operation : {Operation::kMemcpy, Operation::kRead, Operation::kForward})
      rows.push_back(row(operation, elements));
  rows.push_back(row(Operation::kForward, 1000, "mine<"));
  rows.push_back(row(Operation::kForward, 100'000, "mine<"));
  const std::string svg = throughput_svg(rows, {{1, 48 << 10}, {3, std::int64_t{1} << 40}}, "a & b");
  for (const char* part : {"<svg", "</svg>", "1 thread, per tensor, 8 bits", "L1 full", ">memcpy<", ">forward<",
                           ">forward, mine&lt;<", "a &amp; b", "prefers-color-scheme: dark", "elements / ns"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(svg.find("L3 full"), std::string::npos) << "beyond the axis";
  EXPECT_NE(svg.find("class=\"line c3\""), std::string::npos) << "kernels of one operation have colours of their own";
  for (const char* kernel : {"miniqat", "mine<"})
    for (const std::int64_t elements : {1000, 100'000})
      rows.push_back(row(Operation::kForwardInPlace, elements, kernel));
  EXPECT_EQ(throughput_svg(rows, {}, "").find("class=\"line c4\""), std::string::npos) << "operations have the colours";
  // The frame is the only rectangle with this class; the mark stands above it.
  const auto number_behind = [&](std::size_t from, const char* key) {
    return std::stod(svg.substr(svg.find(key, from) + std::string(key).size()));
  };
  const std::size_t mark = svg.rfind("<text", svg.find("L1 full")), frame = svg.rfind("<rect", svg.find("\"frame\""));
  EXPECT_LT(number_behind(mark, " y=\""), number_behind(frame, " y=\""));
  EXPECT_NE(testing::error_of([] { throughput_svg({row(Operation::kForward, 10)}, {}, ""); }), "");
}

TEST(ThroughputPlot, MarksPointsThatWereNotQuietAreHollow) {
  std::vector<KernelTime> rows = {row(Operation::kForward, 1000), row(Operation::kForward, 2000)};
  EXPECT_EQ(throughput_svg(rows, {}, "").find("class=\"hollow"), std::string::npos);
  EXPECT_EQ(throughput_svg(rows, {}, "").find("not quiet"), std::string::npos);
  rows[1].quiet = false;
  const std::string svg = throughput_svg(rows, {}, "");
  EXPECT_NE(svg.find("class=\"hollow c2\""), std::string::npos);
  EXPECT_EQ(svg.find("class=\"hollow"), svg.rfind("class=\"hollow")) << "one of two";
  EXPECT_NE(svg.find(">hollow: not quiet<"), std::string::npos);
}

TEST(Loaded, HasAllKindsOfNeighboursInEachRound) {
  set_thread_count(2);
  int looks = 0;
  const std::vector<LoadedSpeed> speeds = bench_loaded("lenet5", 0.3, [&] { ++looks; });
  set_thread_count(1);
  EXPECT_GT(looks, 30) << "after each step";
  std::vector<std::string> neighbours;
  for (const LoadedSpeed& one : speeds) {
    neighbours.push_back(one.neighbours);
    EXPECT_EQ(one.threads, 2);
    for (const std::vector<double>* rounds : {&one.all_threads, &one.one_thread}) {
      EXPECT_EQ(rounds->size(), 5u);
      EXPECT_GT(std::ranges::min(*rounds), 0);
    }
    EXPECT_EQ(one.of_bar.size(), one.neighbours == "none" ? 0u : 5u);
    const nlohmann::ordered_json json = loaded_json(one);
    EXPECT_EQ(json.contains("of_bar"), one.neighbours != "none") << json;
    EXPECT_EQ(json["images_per_second_rounds"].size(), 5u);
  }
  EXPECT_EQ(neighbours, (std::vector<std::string>{"none", "same session", "own sessions"}));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a neighbour is left";
}

// bench --loaded takes its own neighbours for no disturbance.
TEST(QuietWatch, TheWorkOfAChildThatHasEndedIsOurs) {
  const QuietWatch watch;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rusage usage = {};
    while (usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec < 500'000) getrusage(RUSAGE_SELF, &usage);
    _exit(0);
  }
  // Ended, but not yet counted.
  siginfo_t ended = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const Disturbance before = watch.since();
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const Disturbance after = watch.since();
  if (before.others < 0) GTEST_SKIP() << "this system does not say what its cores do";
  EXPECT_GT(before.others * before.seconds - after.others * after.seconds, 0.3);
}

}  // namespace
}  // namespace miniqat::bench::bench_parts_test
