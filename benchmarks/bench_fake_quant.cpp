// Fake quantization: forward, backward and forward with observer, beside a memcpy of the same number of elements.
//
// The kernels read and write every element once (the observer reads it twice, a mask adds 1/32), so memcpy is the limit
// that they are measured against: bytes_per_second counts 8 bytes an element, and `x_memcpy` is the time as a multiple
// of memcpy's, taken in turns with it because machines drift.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"
#include "quantize/fake_quant_kernels.h"
#include "quantize/range_observer.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::quantize {
namespace {

enum class Work { kForward, kForwardMask, kBackward, kObserveForward };

struct Kernel {
  const char* name;
  Work work;
  bool in_place;
};
constexpr Kernel kKernels[] = {
    {"forward", Work::kForward, false},
    {"forward_in_place", Work::kForward, true},
    {"forward_mask", Work::kForwardMask, false},
    {"forward_mask_in_place", Work::kForwardMask, true},
    {"backward", Work::kBackward, false},
    {"backward_in_place", Work::kBackward, true},
    {"observe_forward", Work::kObserveForward, false},
};

/// A tensor, where results go, and the grids in between.
struct Buffers {
  Buffers(std::int64_t elements, std::int64_t channels, int bits)
      : n(elements / channels * channels), options{.bits = bits}, from(n), to(n), mask(mask_words(n)) {
    Random random(1);
    for (float& value : from) value = random.uniform(-1, 1);
    // Narrower than the data, so that clamping and the mask have something to do.
    for (std::int64_t c = 0; c < channels; ++c) grids.push_back(grid_of<float>({-0.8f, 0.7f}, options));
    fake_quant_forward(from.data(), to.data(), n, grids, mask.data());
  }

  void run(Work work, const float* x, float* y) {
    const auto channels = static_cast<std::int64_t>(grids.size());
    switch (work) {
      case Work::kForward:
        return fake_quant_forward(x, y, n, grids, nullptr);
      case Work::kForwardMask:
        return fake_quant_forward(x, y, n, grids, mask.data());
      case Work::kBackward:
        return fake_quant_backward(x, y, n, mask.data());
      case Work::kObserveForward:
        Observation<float> seen = observe({x, static_cast<std::size_t>(n)}, channels);
        widen(seen, options);
        for (std::int64_t c = 0; c < channels; ++c) grids[c] = grid_of(seen.ranges[c], options);
        return fake_quant_forward(x, y, n, grids, nullptr);
    }
  }

  /// Whether `to` holds what the reference makes of `from`, bit for bit.
  bool verify(Work work) {
    std::ranges::fill(to, -9.0f);
    run(work, from.data(), to.data());
    std::vector<float> expected(n);
    const std::span<const Affine<float>> all(grids);
    if (work == Work::kBackward)
      reference::fake_quant_backward<float>(from, from.data(), all, expected.data(), nullptr, nullptr);
    else
      reference::fake_quant_forward<float>(from, all, expected.data());
    return std::ranges::equal(to, expected, {}, std::bit_cast<std::uint32_t, float>,
                              std::bit_cast<std::uint32_t, float>);
  }

  std::int64_t n;
  GridOptions options;
  std::vector<float> from, to;
  std::vector<std::uint32_t> mask;
  std::vector<Affine<float>> grids;
};

template <class Body>
double seconds(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(benchmark::State& state, const Kernel& kernel, std::int64_t elements, std::int64_t channels, int bits,
         int threads) {
  set_thread_count(threads);
  Buffers buffers(elements, channels, bits);
  if (!buffers.verify(kernel.work)) {
    state.SkipWithError("differs from the reference");
    return;
  }
  const float* x = kernel.in_place ? buffers.to.data() : buffers.from.data();
  std::vector<double> kernel_times, copy_times;
  const auto repeats = std::max<std::int64_t>(1, 200'000 / buffers.n);
  for (auto _ : state) {
    const double time = seconds([&] {
      for (std::int64_t i = 0; i < repeats; ++i) buffers.run(kernel.work, x, buffers.to.data());
    });
    state.SetIterationTime(time);
    kernel_times.push_back(time);
    copy_times.push_back(seconds([&] {
      for (std::int64_t i = 0; i < repeats; ++i) {
        copy_floats(buffers.from.data(), buffers.to.data(), buffers.n);
        benchmark::ClobberMemory();
      }
    }));
  }
  const auto median = [](std::vector<double>& times) {
    std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
    return times[times.size() / 2];
  };
  const double kernel_time = median(kernel_times), copy_time = median(copy_times);
  const double bytes = 8.0 * static_cast<double>(buffers.n * repeats);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["median_GB/s"] = bytes / kernel_time / 1e9;
  state.counters["memcpy_GB/s"] = bytes / copy_time / 1e9;
  state.counters["x_memcpy"] = kernel_time / copy_time;
}

void register_all() {
  for (const Kernel& kernel : kKernels)
    for (int bits : {2, 4, 8})
      for (std::int64_t channels : {1, 64, 33})
        for (std::int64_t elements : {10'000, 1'000'000, 16'000'000})
          for (int threads : {1, 2}) {
            // Backward goes by the mask alone.
            if (kernel.work == Work::kBackward && (channels != 1 || bits != 8)) continue;
            const std::string name = std::string(kernel.name) + "/bits:" + std::to_string(bits) +
                                     "/channels:" + std::to_string(channels) + "/n:" + std::to_string(elements) +
                                     "/threads:" + std::to_string(threads);
            benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
              run(state, kernel, elements, channels, bits, threads);
            })->UseManualTime();
          }
}

}  // namespace
}  // namespace miniqat::quantize

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("cores available", std::to_string(miniqat::available_cores()));
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5)
    std::fprintf(stderr, "This machine is not quiet (load %.1f): trust the x_memcpy ratios only.\n", load);
  miniqat::quantize::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
