// Fake quantization: forward, backward and forward with observer, each beside its limit, which takes turns with it
// because machines drift. `vs_limit` is the limit's median time over the kernel's, so more is better. `target` is
// the least vs_limit that the kernel should reach. The label names the limit:
//   memcpy             of as many elements; a kernel in place, which writes where it has read, can be faster than that
//   read pass + memcpy for kernels that read a second tensor, or the first one twice
//   per tensor         the same kernel with one range for the tensor
//   one thread         the same kernel on one thread
//   1 element/ns       (vs_limit is then elements/ns)
// The time of a small tensor is that of several calls, whose number the label has.
// Results are compared with the reference bit for bit before anything is timed, sums within rounding. Without --all,
// only the kernels with a target; with it, every kernel at every width, number of channels, size and number of threads.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/machine.h"
#include "benchmarks/suite/check/range_sums.h"
#include "core/kernels/instruction_set.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_observer.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::quantize {
namespace {

#define MINIQAT_LOOPS "benchmarks/read_loops.h"
#include "core/kernels/per_instruction_set.h"

constexpr std::int64_t kInCache = 10'000;
constexpr std::int64_t kOutOfCache = 16'000'000;

enum class Work { kForward, kForwardMask, kBackward, kObserveForward, kRangeGradient, kLearnedGradient };
/// Reads x beside dy.
bool sums_up(Work work) { return work == Work::kRangeGradient || work == Work::kLearnedGradient; }
enum class Limit { kMemcpy, kReadAndMemcpy, kPerTensor, kOneThread, kElementPerNanosecond };
constexpr const char* kLimitNames[] = {"memcpy", "read pass + memcpy", "per tensor", "one thread", "1 element/ns"};

struct Kernel {
  const char* name;
  Work work;
  bool in_place;
};
constexpr Kernel kForward = {"forward", Work::kForward, false};
constexpr Kernel kForwardInPlace = {"forward_in_place", Work::kForward, true};
constexpr Kernel kForwardMask = {"forward_mask", Work::kForwardMask, false};
constexpr Kernel kForwardMaskInPlace = {"forward_mask_in_place", Work::kForwardMask, true};
constexpr Kernel kBackward = {"backward", Work::kBackward, false};
constexpr Kernel kBackwardInPlace = {"backward_in_place", Work::kBackward, true};
constexpr Kernel kObserveForward = {"observe_forward", Work::kObserveForward, false};
constexpr Kernel kRangeGradient = {"range_gradient", Work::kRangeGradient, true};
constexpr Kernel kLearnedGradient = {"learned_gradient", Work::kLearnedGradient, true};

struct Case {
  Kernel kernel;
  std::int64_t channels = 1;
  std::int64_t elements = kOutOfCache;
  /// All of OMP_NUM_THREADS or of the machine, unless a case is about one.
  int threads = default_thread_count();
  int bits = 8;
  Limit limit = Limit::kMemcpy;
  /// 0: none.
  double target = 0;

  std::string name() const {
    return std::string(kernel.name) + "/bits:" + std::to_string(bits) + "/channels:" + std::to_string(channels) +
           "/n:" + std::to_string(elements) + "/threads:" + std::to_string(threads);
  }
};

/// The tensors, which all cases of a size share.
struct Tensors {
  explicit Tensors(std::int64_t n) : from(Shape{n}), to(Shape{n}), mask(mask_words(n)) {
    Random random(1);
    for (float& value : from.values<float>()) value = random.uniform(-1, 1);
  }
  Tensor from, to;
  std::vector<std::uint32_t> mask;
};

Tensors& tensors_of(std::int64_t n) {
  // One size at a time: the largest take 200 MB.
  static std::unique_ptr<Tensors> tensors;
  if (!tensors || tensors->from.elements() != n) tensors = std::make_unique<Tensors>(n);
  return *tensors;
}

/// A kernel with its grids.
class Bench {
 public:
  Bench(const Case& what, std::int64_t channels)
      : kernel_(what.kernel), options_{.bits = what.bits}, tensors_(tensors_of(what.elements)), n_(what.elements) {
    // Narrower than the data, so that clamping and the mask have something to do.
    for (std::int64_t c = 0; c < channels; ++c)
      grids_.push_back(grid_of<float>({-0.8f, 0.7f + 0.001f * static_cast<float>(c % 64)}, options_));
    row_ = channel_grids(grids_, scope_);
    sums_.resize(grids_.size());
    fake_quant_forward(from(), to(), n_, row_, tensors_.mask.data());
  }

  float* from() const { return tensors_.from.data<float>(); }
  float* to() const { return tensors_.to.data<float>(); }

  void run() { run(kernel_.in_place ? to() : from()); }
  void copy() const { copy_floats(from(), to(), n_); }
  void read() const {
    parallel_for(n_, kPointwiseGrain, [&](std::int64_t first, std::int64_t last) {
      benchmark::DoNotOptimize(
          MINIQAT_PICK(sum_of_bits)(reinterpret_cast<const std::uint32_t*>(from()) + first, last - first));
    });
  }

  /// Whether the kernel makes what the reference makes, bit for bit, and sums within rounding.
  bool verify() {
    if (kernel_.in_place)
      std::ranges::copy(tensors_.from.values<float>(), to());
    else
      std::ranges::fill(tensors_.to.values<float>(), -9.0f);
    run();
    const std::vector<float> expected = reference();
    const bool same = std::ranges::equal(tensors_.to.values<float>(), expected, {}, std::bit_cast<std::uint32_t, float>,
                                         std::bit_cast<std::uint32_t, float>);
    return same && (!sums_up(kernel_.work) || sums_agree());
  }

 private:
  /// Those of x beside itself as dy.
  bool sums_agree() const {
    std::vector<RangeSums> with_inside(sums_.size());
    fake_quant_backward(from(), from(), n_, row_, nullptr, with_inside, true);
    std::vector<fake_quant_sums> got;
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      const bool learned = kernel_.work == Work::kLearnedGradient;
      got.push_back({sums_[c].below, sums_[c].above, learned ? sums_[c].inside : with_inside[c].inside});
    }
    return benchmarks::sums_difference(tensors_.from.values<float>(), tensors_.from.values<float>(), grids_, got)
        .empty();
  }

  void run(const float* x) {
    switch (kernel_.work) {
      case Work::kForward:
        return fake_quant_forward(x, to(), n_, row_, nullptr);
      case Work::kForwardMask:
        return fake_quant_forward(x, to(), n_, row_, tensors_.mask.data());
      case Work::kBackward:
        return fake_quant_backward(x, to(), n_, tensors_.mask.data());
      case Work::kRangeGradient:
      case Work::kLearnedGradient:
        return fake_quant_backward(from(), x, n_, row_, to(), sums_, kernel_.work == Work::kLearnedGradient);
      case Work::kObserveForward:
        ScratchScope scope;
        Observation<float> seen = observe({x, static_cast<std::size_t>(n_)}, std::ssize(grids_), scope);
        widen(seen, options_);
        for (std::size_t c = 0; c < grids_.size(); ++c) grids_[c] = grid_of(seen.ranges[c], options_);
        return fake_quant_forward(x, to(), n_, channel_grids(grids_, scope), nullptr);
    }
  }

  std::vector<float> reference() const {
    const std::span<const float> x = tensors_.from.values<float>();
    std::vector<float> expected(x.size());
    std::vector<Affine<float>> grids = grids_;
    if (kernel_.work == Work::kObserveForward) {
      ScratchScope scope;
      Observation<float> seen = reference::observe<float>(x, std::ssize(grids), scope);
      widen(seen, options_);
      for (std::size_t c = 0; c < grids.size(); ++c) grids[c] = grid_of(seen.ranges[c], options_);
    }
    if (kernel_.work == Work::kBackward || sums_up(kernel_.work))
      reference::fake_quant_backward<float>(x, x.data(), grids, expected.data(), nullptr, nullptr);
    else
      reference::fake_quant_forward<float>(x, grids, expected.data());
    return expected;
  }

  Kernel kernel_;
  GridOptions options_;
  Tensors& tensors_;
  std::int64_t n_;
  ScratchScope scope_;
  std::vector<Affine<float>> grids_;
  ChannelGrids row_;
  std::vector<RangeSums> sums_;
};

void run(benchmark::State& state, const Case& what) {
  set_thread_count(what.threads);
  Bench bench(what, what.channels);
  Bench per_tensor(what, 1);
  // Google Benchmark comes here several times to find the number of iterations.
  static std::set<std::string> verified;
  if (verified.insert(what.name()).second && !bench.verify())
    return benchmarks::give_up(state, "differs from the reference");
  const auto repeats = std::max<std::int64_t>(1, 400'000 / what.elements);
  const auto seconds = [&](const auto& body) {
    return benchmarks::seconds_of([&] {
      for (std::int64_t i = 0; i < repeats; ++i) {
        body();
        benchmark::ClobberMemory();
      }
    });
  };
  const auto limit = [&] {
    if (what.limit == Limit::kPerTensor) return seconds([&] { per_tensor.run(); });
    if (what.limit == Limit::kOneThread) {
      set_thread_count(1);
      const double time = seconds([&] { bench.run(); });
      set_thread_count(what.threads);
      return time;
    }
    if (what.limit == Limit::kElementPerNanosecond) return 1e-9 * static_cast<double>(what.elements * repeats);
    const double copy = seconds([&] { bench.copy(); });
    return what.limit == Limit::kReadAndMemcpy ? copy + seconds([&] { bench.read(); }) : copy;
  };
  std::vector<double> times, limits;
  for (auto _ : state) {
    times.push_back(seconds([&] { bench.run(); }));
    state.SetIterationTime(times.back());
    limits.push_back(limit());
  }
  const double time = benchmarks::median(times);
  state.SetLabel((repeats > 1 ? std::to_string(repeats) + " calls, limit: " : "limit: ") +
                 kLimitNames[static_cast<int>(what.limit)]);
  state.counters["elements/ns"] = 1e-9 * static_cast<double>(what.elements * repeats) / time;
  state.counters["vs_limit"] = benchmarks::median(limits) / time;
  if (what.target > 0) state.counters["target"] = what.target;
}

/// The limit that a kernel has by its nature, and its target where there is one.
Case with_limit(Case what) {
  const bool out_of_cache = what.elements >= kOutOfCache;
  const Work work = what.kernel.work;
  what.limit = sums_up(work) || work == Work::kObserveForward ? Limit::kReadAndMemcpy : Limit::kMemcpy;
  if (out_of_cache && work == Work::kForward) what.target = what.kernel.in_place ? 1.5 : 0.95;
  if (out_of_cache && work == Work::kBackward) what.target = 0.95;
  if (out_of_cache && work == Work::kObserveForward) what.target = 0.9;
  return what;
}

/// What the targets are about.
std::vector<Case> usual_cases() {
  const std::int64_t some_channels[] = {1, 64, 33, 3, 10, 1000};
  std::vector<Case> cases;
  for (const Kernel& kernel : {kForward, kForwardInPlace, kObserveForward})
    for (std::int64_t channels : some_channels) cases.push_back(with_limit({kernel, channels}));
  for (const Kernel& kernel : {kForwardMask, kForwardMaskInPlace, kRangeGradient, kLearnedGradient})
    for (std::int64_t channels : {1, 64}) cases.push_back(with_limit({kernel, channels}));
  for (const Kernel& kernel : {kBackward, kBackwardInPlace}) cases.push_back(with_limit({kernel}));

  for (const Kernel& kernel : {kForward, kForwardInPlace, kForwardMask, kObserveForward})
    for (std::int64_t channels : {1, 64, 33}) cases.push_back(with_limit({kernel, channels, 1'000'000}));
  cases.push_back(with_limit({kBackward, 1, 1'000'000}));

  for (const Kernel& kernel : {kForward, kForwardMask})
    for (std::int64_t channels : some_channels) {
      const bool one = channels == 1;
      cases.push_back(
          {kernel, channels, kInCache, 1, 8, one ? Limit::kElementPerNanosecond : Limit::kPerTensor, one ? 4.0 : 0.7});
    }
  for (std::int64_t channels : {1, 64}) cases.push_back(with_limit({kObserveForward, channels, kInCache, 1}));
  cases.push_back(with_limit({kBackward, 1, kInCache, 1}));
  for (std::int64_t elements : {std::int64_t{1'000}, kInCache, std::int64_t{30'000}})
    cases.push_back({kForward, 1, elements, default_thread_count(), 8, Limit::kOneThread, 0.95});
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::int64_t elements : {kOutOfCache, std::int64_t{1'000'000}, kInCache})
    for (const Kernel& kernel : {kForward, kForwardInPlace, kForwardMask, kForwardMaskInPlace, kBackward,
                                 kBackwardInPlace, kObserveForward, kRangeGradient, kLearnedGradient})
      for (int bits : {2, 4, 8, 16})
        for (std::int64_t channels : {1, 64, 33, 3, 10, 1000})
          for (const int threads : std::set<int>{1, default_thread_count()}) {
            // Backward goes by the mask alone.
            if (kernel.work == Work::kBackward && (channels != 1 || bits != 8)) continue;
            cases.push_back(with_limit({kernel, channels, elements, threads, bits}));
          }
  return cases;
}

bool want_all = false;

void register_cases() {
  for (const Case& what : want_all ? all_cases() : usual_cases())
    benchmark::RegisterBenchmark(what.name().c_str(), [what](benchmark::State& state) {
      run(state, what);
    })->UseManualTime();
}

}  // namespace
}  // namespace miniqat::quantize

int main(int argc, char** argv) {
  const miniqat::ComputeScope computing;
  std::vector<char*> arguments(argv, argv + argc);
  miniqat::quantize::want_all = std::erase_if(arguments, [](const char* a) { return std::string_view(a) == "--all"; });
  // Long enough for a median; what the user says comes later and wins.
  std::string time = "--benchmark_min_time=0.1";
  arguments.insert(arguments.begin() + 1, time.data());
  const int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  return miniqat::benchmarks::run_benchmarks(count, arguments.data(), miniqat::quantize::register_cases);
}
