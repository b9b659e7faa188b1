// Right kernels pass; each kind of wrong one is refused, with what and where.

#include "bench/kernel_check.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "bench/foreign_code.h"
#include "bench/kernel_bench.h"
#include "bench/timed_case.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "tests/errors.h"

namespace miniqat::bench::kernel_check_test {
namespace {

using testing::error_of;
using testing::mentions;

float right(float x, const fake_quant_grid& grid) {
  const float raised = x < grid.nudged_min ? grid.nudged_min : x;
  const float clamped = raised > grid.nudged_max ? grid.nudged_max : raised;
  return (grid.quant_min + std::floor((clamped - grid.nudged_min) / grid.scale + 0.5f) - grid.zero_point) * grid.scale;
}

using OneFunction = float (*)(float x, const fake_quant_grid& grid);

template <OneFunction kOne>
void each(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = kOne(x[i], grids[i % channels]);
}

float ties_to_even(float x, const fake_quant_grid& grid) {
  const float raised = x < grid.nudged_min ? grid.nudged_min : x;
  const float clamped = raised > grid.nudged_max ? grid.nudged_max : raised;
  return (grid.quant_min + std::nearbyint((clamped - grid.nudged_min) / grid.scale) - grid.zero_point) * grid.scale;
}

float nan_to_max(float x, const fake_quant_grid& grid) { return std::isnan(x) ? grid.nudged_max : right(x, grid); }

float negative_zero(float x, const fake_quant_grid& grid) {
  const float y = right(x, grid);
  return y == 0 && x < 0 ? -0.0f : y;
}

float wrong_when_narrow(float x, const fake_quant_grid& grid) {
  return grid.quant_min == 1 && x > grid.nudged_max ? grid.nudged_max + grid.scale : right(x, grid);
}

/// Blocks of eight; the rest is copied.
void odd_tail(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = i < n / 8 * 8 ? right(x[i], grids[i % channels]) : x[i];
}

void writes_past(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  y[n] = 0;
}

void reads_past(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  if (n > 0) static_cast<void>(*static_cast<const volatile float*>(x + n));
}

void writes_before(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  if (n > 100) y[-1] = 0;
}

void changes_x(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  if (x != y && n > 0) const_cast<float*>(x)[0] = 99;
}

void crashes(const float*, float*, std::int64_t, const fake_quant_grid*, std::int64_t) { raise(SIGFPE); }
void leaves(const float*, float*, std::int64_t, const fake_quant_grid*, std::int64_t) { _exit(3); }

void leaves_well(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  if (n == 5) _exit(0);
}

void rounds_down_from_now(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids,
                          std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  std::fesetround(FE_TOWARDZERO);
}

void changes_grids(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  const_cast<fake_quant_grid*>(grids)[channels - 1].scale = 2;
}

void throws(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  if (n == 1000) throw std::runtime_error("of its own");
}

NamedKernel kernel_of(ForwardFunction forward) {
  NamedKernel kernel{"tried", {}, nullptr};
  kernel.functions.forward = forward;
  return kernel;
}

std::string fault_of(const NamedKernel& kernel) {
  return error_of([&] { require_right(kernel); });
}

TEST(KernelCheck, RightKernelsPass) {
  EXPECT_EQ(fault_of(our_kernel()), "");
  EXPECT_EQ(fault_of(kernel_of(each<right>)), "");
}

TEST(KernelCheck, TheExamplesPass) {
  const std::vector<NamedKernel> kernels = registered_kernels();
  ASSERT_GE(kernels.size(), 1u);
  for (const NamedKernel& kernel : kernels) {
    if (is_supported(kernel)) {
      EXPECT_EQ(fault_of(kernel), "") << kernel.name;
    }
  }
}

TEST(KernelCheck, WrongNumbersAreRefusedWithPlaceAndNeighbours) {
  for (const ForwardFunction wrong : {each<ties_to_even>, each<nan_to_max>, each<negative_zero>, odd_tail})
    EXPECT_TRUE(mentions(fault_of(kernel_of(wrong)), {"kernel tried: forward, ", "bits", "channel", "element ",
                                                      "expected ", "got ", "for x = ", "elements ", "grid: scale "}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(each<ties_to_even>)), {".5 steps above nudged_min)"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(each<nan_to_max>)), {"expected nan", "for x = nan"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(each<negative_zero>)), {"expected 0, got -0"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(each<wrong_when_narrow>)), {"narrow range"}));
}

TEST(KernelCheck, MemoryOfOthersIsGuarded) {
  EXPECT_TRUE(mentions(fault_of(kernel_of(writes_past)), {"forward", "right after the end of the result"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(reads_past)), {"1 element: ", "right after the end of x"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(writes_before)), {"wrote 1 byte before the begin of the result"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(changes_x)), {"x is changed"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(changes_grids)), {"0 elements: grids are changed"}));
}

#if defined(__x86_64__) && defined(__linux__)
TEST(KernelCheck, ReadingIsToldFromWriting) {
  EXPECT_TRUE(mentions(fault_of(kernel_of(writes_past)), {"wrote right after"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(reads_past)), {"read right after"}));
}
#endif

TEST(KernelCheck, ACrashIsAnError) {
  EXPECT_TRUE(mentions(fault_of(kernel_of(crashes)), {"forward, 2 bits", "ended by signal 8"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(leaves)), {"ended the process with status 3"}));
  EXPECT_TRUE(mentions(fault_of(kernel_of(leaves_well)), {"forward, 2 bits", "ended the process with status 0"}));
}

TEST(KernelCheck, TheRoundingModeMustStay) {
  EXPECT_TRUE(mentions(fault_of(kernel_of(rounds_down_from_now)),
                       {"forward, 2 bits, 1 channel, 0 elements: leaves the rounding mode"}));
}

TEST(TimedCase, TheRoundingModeMustStay) {
  NamedKernel kernel = kernel_of(rounds_down_from_now);
  BenchTensors tensors(1000);
  TimedCase one(tensors, {Operation::kForward, 8, 1, 1000}, &kernel);
  EXPECT_TRUE(mentions(error_of([&] { one.verify(); }), {"kernel tried: ", ": leaves the rounding mode"}));
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(KernelCheck, AnExceptionNamesTheStep) {
  const std::string fault = error_of([] {
    const std::string text = run_trial([] {
      trial_step("a step");
      throw std::runtime_error("of its own");
    });
    if (!text.empty()) fail(text);
  });
  EXPECT_EQ(fault, "a step: threw \"of its own\"");
}

/// The last vector as a whole, which ends before the page.
void writes_whole_vectors(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids,
                          std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  for (std::int64_t i = n; i % 8 != 0; ++i) y[i] = 0;
}

void reads_far_past(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  each<right>(x, y, n, grids, channels);
  y[n - 1] += 0 * x[n + 1];
}

void crashes_at_the_fourth_call(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids,
                                std::int64_t channels) {
  static int calls = 0;
  each<right>(x, y, n, grids, channels);
  if (++calls > 3) raise(SIGSEGV);
}

/// Ends by a signal, whatever is found out.
void verify_timed(ForwardFunction forward, std::int64_t elements) {
  const NamedKernel kernel = kernel_of(forward);
  set_thread_count(1);
  BenchTensors tensors(elements);
  const std::string error = error_of([&] {
    TimedCase(tensors, {Operation::kForward, 8, 1, elements}, &kernel).verify();
  });
  std::fprintf(stderr, "%s\n", error.c_str());
  std::abort();
}

TEST(TimedCase, ALargeTensorIsGuarded) {
  const auto expect_fault = [](ForwardFunction wrong, std::int64_t elements, const std::string& fault) {
    SCOPED_TRACE(fault);
    EXPECT_DEATH(verify_timed(wrong, elements),
                 concat("kernel tried: forward per tensor, 8 bits, ", elements, " elements, 1 thread: ", fault, "\n"));
  };
  expect_fault(writes_whole_vectors, 100'001, "wrote right after the end of the result");
  expect_fault(writes_past, 100'000, "wrote right after the end of the result");
  expect_fault(reads_far_past, 100'000, "read 4 bytes after the end of x");
  expect_fault(writes_before, 100'000, "wrote 1 byte before the begin of the result");
  expect_fault(changes_x, 100'000, "x is changed");
}

void time_a_late_crash() {
  set_thread_count(1);
  const CaseChoice choice{{Operation::kForward}, {8}, {1}};
  bench_kernels({.choice = choice, .kernels = {our_kernel(), kernel_of(crashes_at_the_fourth_call)}}, 1000,
                measure_roof(8000), PerfCounters());
}

TEST(TimedCase, ACrashWhileItIsTimedIsNamed) {
  EXPECT_DEATH(time_a_late_crash(), "1000 elements, 1 thread, while it was timed: crashed\n");
}

TEST(TimedCase, AnExceptionNamesKernelAndCase) {
  const NamedKernel kernel = kernel_of(throws);
  BenchTensors tensors(1000);
  TimedCase one(tensors, {Operation::kForward, 8, 1, 1000}, &kernel);
  EXPECT_TRUE(mentions(error_of([&] { one.run(); }),
                       {"kernel tried: forward per tensor, 8 bits, 1000 elements, ", ": threw \"of its own\""}));
}

TEST(KernelCheck, EveryFunctionIsCompared) {
  NamedKernel kernel = our_kernel();
  kernel.functions.min_max = [](const float*, std::int64_t, std::int64_t channels, float* min, float* max) {
    for (std::int64_t c = 0; c < channels; ++c) min[c] = max[c] = 0;
    return 0;
  };
  EXPECT_TRUE(mentions(fault_of(kernel), {"min_max"}));
  kernel = our_kernel();
  kernel.functions.backward_mask = [](const float* dy, float* dx, std::int64_t n, const void*) {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i];
  };
  EXPECT_TRUE(mentions(fault_of(kernel), {"backward_mask", "expected 0"}));
  kernel = our_kernel();
  static const fake_quant_kernel ours = our_kernel().functions;
  kernel.functions.backward_learned = [](const float* x, const float* dy, float* dx, std::int64_t n,
                                         const fake_quant_grid* grids, std::int64_t channels, fake_quant_sums* sums) {
    ours.backward_learned(x, dy, dx, n, grids, channels, sums);
    for (std::int64_t c = 0; c < channels; ++c) sums[c].inside *= 1.001;
  };
  EXPECT_TRUE(mentions(fault_of(kernel), {"backward_learned", "sums of channel"}));
}

TEST(CrashNote, NamesWhatCrashedAndWhatDidNotEnd) {
  EXPECT_EXIT(
      {
        const CrashNote note("kernel k");
        raise(SIGSEGV);
      },
      ::testing::KilledBySignal(SIGSEGV), "miniqat bench: kernel k: crashed\n");
  EXPECT_EXIT(
      {
        const CrashNote note("kernel k", 1);
        for (;;) pause();
      },
      ::testing::KilledBySignal(SIGALRM), "miniqat bench: kernel k: did not end within 1 second\n");
  EXPECT_EXIT(
      {
        const CrashNote note("kernel k");
        std::exit(0);
      },
      ::testing::ExitedWithCode(1), "miniqat bench: kernel k: ended the process\n");
  EXPECT_EXIT(
      {
        { const CrashNote note("kernel k"); }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

TEST(KernelNames, MustBeGoodAndUnique) {
  const auto refuses = [](const std::vector<std::string>& names, const std::vector<std::string>& parts) {
    std::vector<NamedKernel> kernels;
    for (const std::string& name : names) kernels.push_back({name, our_kernel().functions, nullptr});
    EXPECT_TRUE(mentions(error_of([&] { require_good_names(kernels, "here"); }), parts));
  };
  refuses({"a b"}, {"here", "letters", "a b"});
  refuses({"forward"}, {"forward"});
  refuses({"miniqat"}, {"miniqat"});
  refuses({"a", "b", "a"}, {"two kernels", "\"a\""});
  EXPECT_EQ(error_of([] { require_good_names({{"a-1_B", our_kernel().functions, nullptr}}, "here"); }), "");
  EXPECT_TRUE(mentions(error_of([] { require_good_names({{"a", {}, nullptr}}, "here"); }), {"has no function"}));
}

}  // namespace
}  // namespace miniqat::bench::kernel_check_test
