#include "benchmarks/fake_quant_step.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/kernels/scratch.h"
#include "core/random.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_gradient.h"
#include "quantize/range_observer.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::benchmarks {
namespace {

constexpr quantize::GridOptions kGrid = {.bits = 8};
constexpr double kDecay = 0.999;

}  // namespace

FakeQuantStep::FakeQuantStep(std::int64_t elements, std::int64_t channels, bool learned)
    : learned_(learned),
      elements_(elements / channels * channels),
      x_(elements_),
      y_(elements_),
      gradient_(elements_),
      min_(channels),
      max_(channels),
      ranges_(channels),
      grids_(channels),
      mask_(quantize::mask_words(elements_)),
      sums_(channels) {
  Random random(1);
  for (float& value : x_) value = random.uniform(-1, 1);
  for (float& value : gradient_) value = random.uniform(-1, 1);
  // Some lie outside.
  for (quantize::Range<float>& range : ranges_) range = {-0.8f, 0.8f};
  verify();
}

void FakeQuantStep::observe() {
  if (quantize::column_ranges(x_.data(), elements_, std::ssize(min_), min_.data(), max_.data()))
    fail("the tensor holds a NaN");
  const double weight = quantize::debiased_weight(kDecay, ++updates_);
  for (std::size_t c = 0; c < ranges_.size(); ++c) {
    quantize::Range<float>& range = ranges_[c];
    const quantize::Range<float> seen = quantize::widen_to_zero<float>({min_[c], max_[c]});
    range = {quantize::move_towards(range.min, seen.min, weight), quantize::move_towards(range.max, seen.max, weight)};
  }
}

void FakeQuantStep::forward() {
  if (!learned_) observe();
  for (std::size_t c = 0; c < ranges_.size(); ++c) grids_[c] = quantize::grid_of(ranges_[c], kGrid);
  quantize::fake_quant_forward(x_.data(), y_.data(), elements_, grids_, learned_ ? nullptr : mask_.data());
}

void FakeQuantStep::backward() {
  if (learned_) {
    ScratchScope scope;
    quantize::fake_quant_backward(x_.data(), gradient_.data(), elements_, quantize::channel_grids(grids_, scope),
                                  gradient_.data(), sums_, true);
    quantize::range_gradients({.range = quantize::RangeKind::kLearned}, ranges_, sums_, min_.data(), max_.data());
    return;
  }
  quantize::fake_quant_backward(gradient_.data(), gradient_.data(), elements_, mask_.data());
}

void FakeQuantStep::verify() {
  const std::vector<float> d_y = gradient_;
  forward();
  backward();
  std::vector<float> y(elements_), d_x(elements_);
  quantize::reference::fake_quant_forward<float>(x_, grids_, y.data());
  quantize::reference::fake_quant_backward<float>(x_, d_y.data(), grids_, d_x.data(), nullptr, nullptr);
  if (y != y_ || d_x != gradient_) fail("the quantizer differs from the reference loops");
  if (!learned_) return;
  std::vector<float> d_min(grids_.size()), d_max(grids_.size());
  quantize::reference::add_learned_gradients<float>(x_, d_y.data(), grids_, false, d_min.data(), d_max.data());
  const double rounding = 1e-5 * static_cast<double>(elements_);
  for (std::size_t c = 0; c < grids_.size(); ++c)
    if (std::abs(d_min[c] - min_[c]) > rounding || std::abs(d_max[c] - max_[c]) > rounding)
      fail("the gradients of a learned range differ from the reference loops");
}

}  // namespace miniqat::benchmarks
