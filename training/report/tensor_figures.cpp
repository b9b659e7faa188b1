#include "training/report/tensor_figures.h"

#include <algorithm>
#include <cmath>

namespace miniqat::training {
namespace {

/// A picture has no room for more.
constexpr std::int64_t kMostCounts = 256;

void count(Bins& bins, double place) {
  if (!(place >= 0))
    ++bins.below;
  else if (place >= static_cast<double>(bins.counts.size()))
    ++bins.above;
  else
    ++bins.counts[static_cast<std::size_t>(place)];
}

}  // namespace

std::optional<double> NoiseSum::decibels() const {
  const double value = 10 * std::log10(signal / noise);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

TensorCounter::TensorCounter(const quantize::QuantizerRange& quantizer) : grids_(quantizer.grids()) {
  figures_.quantizer = quantizer;
  const std::int64_t bits = quantizer.attributes.bits;
  figures_.quant_min = quantizer.attributes.narrow_range ? 1 : 0;
  figures_.quant_max = (std::int64_t{1} << bits) - 1;
  const std::int64_t levels = figures_.levels();
  counts_.resize(static_cast<std::size_t>(levels));
  figures_.integers_per_count = std::max<std::int64_t>(1, (std::int64_t{1} << bits) / kMostCounts);
  // A power of two: then a bin ends exactly where one integer becomes the next.
  bins_per_integer_ = bits <= 4 ? 8 : bits <= 5 ? 4 : bits <= 6 ? 2 : 1;
  margin_ = std::max<std::int64_t>(1, levels / 8 / figures_.integers_per_count) * figures_.integers_per_count;
  Bins& bins = figures_.floats;
  bins.width = static_cast<double>(figures_.integers_per_count) / static_cast<double>(bins_per_integer_);
  bins.first = static_cast<double>(figures_.quant_min - margin_) - 0.5;
  const std::int64_t groups = (levels + figures_.integers_per_count - 1) / figures_.integers_per_count;
  bins.counts.resize(
      static_cast<std::size_t>((groups + 2 * margin_ / figures_.integers_per_count) * bins_per_integer_));
}

void TensorCounter::add(const Tensor& x, std::int64_t elements) {
  const float* values = x.data<float>();
  for (std::int64_t i = 0; i < elements; ++i) {
    const quantize::Affine<float>& grid = grids_[static_cast<std::size_t>(i) % grids_.size()];
    const float value = values[i];
    if (std::isnan(value)) {
      ++figures_.nan;
      continue;
    }
    const float integer = quantize::quantize(grid, value);
    if (figures_.values == 0) figures_.min = figures_.max = value;
    ++figures_.values;
    figures_.min = std::min(figures_.min, value);
    figures_.max = std::max(figures_.max, value);
    ++counts_[static_cast<std::size_t>(static_cast<std::int64_t>(integer) - figures_.quant_min)];
    figures_.noise.add(value, quantize::dequantize(grid, integer));
    // The sum that quantize() rounds down: an integer's bins are those of the numbers that become it.
    const float steps = (value - grid.nudged_min) / grid.scale + 0.5f;
    figures_.clipped += steps < 0 || steps >= static_cast<float>(counts_.size()) ? 1 : 0;
    count(figures_.floats, (static_cast<double>(steps) + static_cast<double>(margin_)) / figures_.floats.width);
  }
}

TensorFigures TensorCounter::finish() const {
  TensorFigures figures = figures_;
  figures.unused = std::ranges::count(counts_, 0);
  const auto group = static_cast<std::size_t>(figures.integers_per_count);
  figures.integers.assign((counts_.size() + group - 1) / group, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i) figures.integers[i / group] += counts_[i];
  return figures;
}

FloatFigures float_figures(const Tensor& x) {
  constexpr std::size_t kBins = 64;
  FloatFigures figures{.values = x.elements()};
  const auto values = x.values<float>();
  const bool is_finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  if (values.empty() || !is_finite) return figures;
  const auto [min, max] = std::ranges::minmax(values);
  figures.min = min;
  figures.max = max;
  const double width = (static_cast<double>(max) - min) / kBins;
  figures.floats = {.first = min, .width = width > 0 ? width : 1, .counts = std::vector<std::int64_t>(kBins)};
  // The largest lies on the end of the last bin.
  for (const float value : values)
    ++figures.floats
          .counts[std::min(kBins - 1, static_cast<std::size_t>((value - figures.floats.first) / figures.floats.width))];
  return figures;
}

}  // namespace miniqat::training
