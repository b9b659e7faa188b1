#include "cli/bench_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "cli/bench_clock.h"
#include "core/error.h"
#include "core/kernels/scratch.h"
#include "core/random.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_gradient.h"
#include "quantize/range_observer.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::cli {
namespace {

using quantize::Affine;

constexpr std::int64_t kChannels = 64;
constexpr quantize::GridOptions kGrid = {.bits = 8};

enum class Work { kCopy, kForward, kForwardInPlace, kObserveForward, kBackward, kLearnedBackward };

struct Kernel {
  const char* name;
  Work work;
  bool per_channel;
  /// Read and written.
  int bytes_per_element;
};

// Backward goes by the mask that forward has left, and knows no channels. With a learned range it reads x, too, and
// sums up the gradients of both ends.
constexpr Kernel kKernels[] = {
    {"memcpy", Work::kCopy, false, 8},
    {"forward", Work::kForward, false, 8},
    {"forward in place", Work::kForwardInPlace, false, 8},
    {"observe, forward", Work::kObserveForward, false, 12},
    {"backward", Work::kBackward, false, 8},
    {"backward, learned", Work::kLearnedBackward, false, 12},
    {"forward", Work::kForward, true, 8},
    {"forward in place", Work::kForwardInPlace, true, 8},
    {"observe, forward", Work::kObserveForward, true, 12},
    {"backward, learned", Work::kLearnedBackward, true, 12},
};

/// Tensors for all kernels, and what each kernel does with them.
class Workbench {
 public:
  explicit Workbench(std::int64_t elements) : n_(elements), from_(n_), to_(n_), mask_(quantize::mask_words(n_)) {
    Random random(1);
    for (float& value : from_) value = random.uniform(-1, 1);
    // Narrower than the data, so that clamping and the mask have something to do.
    const Affine<float> grid = quantize::grid_of<float>({-0.8f, 0.7f}, kGrid);
    per_tensor_.assign(1, grid);
    per_channel_.assign(kChannels, grid);
    quantize::fake_quant_forward(from_.data(), to_.data(), n_, per_tensor_, mask_.data());
  }

  void run(const Kernel& kernel) {
    std::vector<Affine<float>>& grids = grids_of(kernel);
    switch (kernel.work) {
      case Work::kCopy:
        return quantize::copy_floats(from_.data(), to_.data(), n_);
      case Work::kForward:
        return quantize::fake_quant_forward(from_.data(), to_.data(), n_, grids, nullptr);
      case Work::kForwardInPlace:
        return quantize::fake_quant_forward(to_.data(), to_.data(), n_, grids, nullptr);
      case Work::kBackward:
        return quantize::fake_quant_backward(from_.data(), to_.data(), n_, mask_.data());
      case Work::kLearnedBackward: {
        ScratchScope row;
        sums_.assign(grids.size(), {});
        return quantize::fake_quant_backward(from_.data(), to_.data(), n_, quantize::channel_grids(grids, row),
                                             to_.data(), sums_, true);
      }
      case Work::kObserveForward:
        ScratchScope scope;
        quantize::Observation<float> seen = quantize::observe(from_, std::ssize(grids), scope);
        quantize::widen(seen, kGrid);
        // Into another grid: the mask belongs to the fixed ones.
        observed_.clear();
        for (const quantize::Range<float>& range : seen.ranges) observed_.push_back(quantize::grid_of(range, kGrid));
        return quantize::fake_quant_forward(from_.data(), to_.data(), n_, observed_, nullptr);
    }
  }

  /// Throws Error unless the kernel gives the reference's bits.
  void verify(const Kernel& kernel) {
    if (kernel.work == Work::kForwardInPlace || kernel.work == Work::kLearnedBackward)
      to_ = from_;
    else
      std::ranges::fill(to_, -9.0f);
    run(kernel);
    const std::vector<float> expected = reference(kernel);
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    const auto [ours, theirs] = std::ranges::mismatch(to_, expected, {}, bits, bits);
    if (ours != to_.end())
      fail("fake quantization, ", kernel.name, kernel.per_channel ? " per channel" : "", " of ", n_,
           " elements: element ", ours - to_.begin(), " is ", *ours, ", the reference says ", *theirs);
    if (kernel.work == Work::kLearnedBackward) verify_sums(grids_of(kernel));
  }

 private:
  std::vector<Affine<float>>& grids_of(const Kernel& kernel) { return kernel.per_channel ? per_channel_ : per_tensor_; }

  /// The gradients of the ends, summed up in another order.
  void verify_sums(const std::vector<Affine<float>>& grids) const {
    constexpr double kRounding = 1e-5;
    std::vector<float> d_min(grids.size()), d_max(grids.size()), own_min(grids.size()), own_max(grids.size());
    quantize::reference::add_learned_gradients<float>(from_, from_.data(), grids, false, d_min.data(), d_max.data());
    std::vector<quantize::Range<float>> ranges;
    for (const Affine<float>& grid : grids) ranges.push_back({grid.nudged_min, grid.nudged_max});
    quantize::range_gradients({.range = quantize::RangeKind::kLearned}, ranges, sums_, own_min.data(), own_max.data());
    for (std::size_t c = 0; c < grids.size(); ++c) {
      const double largest = kRounding * static_cast<double>(n_ + 1);
      if (std::abs(own_min[c] - d_min[c]) > largest || std::abs(own_max[c] - d_max[c]) > largest)
        fail("the gradients of a learned range of ", n_, " elements are ", own_min[c], " and ", own_max[c],
             ", the reference says ", d_min[c], " and ", d_max[c]);
    }
  }

  std::vector<float> reference(const Kernel& kernel) {
    if (kernel.work == Work::kCopy) return from_;
    std::vector<float> expected(n_);
    std::vector<Affine<float>> grids = grids_of(kernel);
    if (kernel.work == Work::kObserveForward) {
      ScratchScope scope;
      auto seen = quantize::reference::observe<float>(from_, std::ssize(grids), scope);
      quantize::widen(seen, kGrid);
      for (std::size_t c = 0; c < grids.size(); ++c) grids[c] = quantize::grid_of(seen.ranges[c], kGrid);
    }
    const std::span<const Affine<float>> all(grids);
    if (kernel.work == Work::kBackward || kernel.work == Work::kLearnedBackward)
      quantize::reference::fake_quant_backward<float>(from_, from_.data(), all, expected.data(), nullptr, nullptr);
    else
      quantize::reference::fake_quant_forward<float>(from_, all, expected.data());
    return expected;
  }

  std::int64_t n_;
  std::vector<float> from_;
  std::vector<float> to_;
  std::vector<std::uint32_t> mask_;
  std::vector<Affine<float>> per_tensor_;
  std::vector<Affine<float>> per_channel_;
  std::vector<Affine<float>> observed_;
  std::vector<quantize::RangeSums> sums_;
};

Spread inverse(const Spread& ratio) { return {1 / ratio.median, 1 / ratio.high, 1 / ratio.low}; }

}  // namespace

std::vector<KernelTime> bench_kernels(std::int64_t elements, double budget_seconds) {
  Workbench bench(elements);
  for (const Kernel& kernel : kKernels) bench.verify(kernel);
  // A sample is long beside the clock's own cost.
  const std::int64_t repeats = std::max<std::int64_t>(1, 400'000 / elements);
  const std::vector<Measured> times = measure_in_turns(std::size(kKernels), budget_seconds, [&](std::size_t k) {
    return seconds_of([&] {
      for (std::int64_t i = 0; i < repeats; ++i) bench.run(kKernels[k]);
    });
  });
  std::vector<KernelTime> results;
  for (std::size_t k = 0; k < times.size(); ++k)
    results.push_back({.kernel = kKernels[k].name,
                       .per_channel = kKernels[k].per_channel,
                       .elements = elements,
                       .seconds = times[k].seconds.median / static_cast<double>(repeats),
                       .bytes = static_cast<double>(elements) * kKernels[k].bytes_per_element,
                       .of_memcpy = inverse(times[k].over_first)});
  return results;
}

}  // namespace miniqat::cli
