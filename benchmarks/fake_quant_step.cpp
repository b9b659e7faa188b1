#include "benchmarks/fake_quant_step.h"

#include <algorithm>

#include "core/error.h"
#include "core/random.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_observer.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::benchmarks {
namespace {

constexpr quantize::GridOptions kGrid = {.bits = 8};
constexpr double kDecay = 0.999;

}  // namespace

FakeQuantStep::FakeQuantStep(std::int64_t elements, std::int64_t channels)
    : elements_(elements / channels * channels),
      x_(elements_),
      y_(elements_),
      gradient_(elements_),
      min_(channels),
      max_(channels),
      ranges_(channels),
      grids_(channels),
      mask_(quantize::mask_words(elements_)) {
  Random random(1);
  for (float& value : x_) value = random.uniform(-1, 1);
  for (float& value : gradient_) value = random.uniform(-1, 1);
  verify();
}

void FakeQuantStep::forward() {
  if (quantize::min_max(x_.data(), elements_, min_, max_)) fail("the tensor holds a NaN");
  const double weight = quantize::debiased_weight(kDecay, ++updates_);
  for (std::size_t c = 0; c < ranges_.size(); ++c) {
    quantize::Range<float>& range = ranges_[c];
    const quantize::Range<float> seen = quantize::widen_to_zero<float>({min_[c], max_[c]});
    range = {quantize::move_towards(range.min, seen.min, weight), quantize::move_towards(range.max, seen.max, weight)};
    grids_[c] = quantize::grid_of(range, kGrid);
  }
  quantize::fake_quant_forward(x_.data(), y_.data(), elements_, grids_, mask_.data());
}

void FakeQuantStep::backward() {
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
}

}  // namespace miniqat::benchmarks
