#include "quantize/calibrate/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace miniqat::quantize {
namespace {

constexpr std::uint32_t kExponents = 256;

/// The least magnitude in a bin of an octave; `bin` may be one beyond the last. Zeros and denormals have exponent 0.
float magnitude(std::uint32_t exponent, std::uint32_t bin, int mantissa_bits) {
  return exponent == 0 ? 0 : std::bit_cast<float>((exponent << 23) + (bin << (23 - mantissa_bits)));
}

}  // namespace

bool Histogram::add(std::span<const float> values) {
  constexpr std::uint32_t kMask = (1u << kMantissaBits) - 1;
  bool finite = true;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t octave = bits >> 23;
    if (octave % kExponents == kExponents - 1) {
      finite = false;
      continue;
    }
    std::unique_ptr<Octave>& bins = octaves_[octave];
    if (!bins) bins = std::make_unique<Octave>();
    ++(*bins)[bits >> (23 - kMantissaBits) & kMask];
    if (count_++ == 0) extremes_ = {value, value};
    extremes_ = {std::min(extremes_.min, value), std::max(extremes_.max, value)};
  }
  return finite;
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> bins;
  const auto collect = [&](bool negative, std::uint32_t exponent, std::uint32_t bin) {
    const std::int64_t count = (*octaves_[negative ? kExponents + exponent : exponent])[bin];
    if (count == 0) return;
    const float inner = magnitude(exponent, bin, kMantissaBits), outer = magnitude(exponent, bin + 1, kMantissaBits);
    const auto cut = [&](float x) { return std::clamp(x, extremes_.min, extremes_.max); };
    bins.push_back({cut(negative ? -outer : inner), cut(negative ? -inner : outer), count});
  };
  constexpr std::uint32_t kBins = 1u << kMantissaBits;
  for (std::uint32_t exponent = kExponents; exponent-- > 0;)
    for (std::uint32_t bin = octaves_[kExponents + exponent] ? kBins : 0; bin-- > 0;) collect(true, exponent, bin);
  for (std::uint32_t exponent = 0; exponent < kExponents; ++exponent)
    for (std::uint32_t bin = 0; octaves_[exponent] && bin < kBins; ++bin) collect(false, exponent, bin);
  return bins;
}

Range<float> Histogram::percentile(double percent) const {
  // Far less than one value, and far more than what rounding does to the product.
  constexpr double kSlack = 1e-3;
  const auto allowed = static_cast<std::int64_t>(static_cast<double>(count_) * (100 - percent) / 100 + kSlack);
  const std::vector<Bin> all = bins();
  Range<float> range = extremes_;
  std::int64_t outside = 0;
  for (auto bin = all.begin(); bin != all.end(); ++bin) {
    range.min = bin->low;
    if ((outside += bin->count) > allowed) break;
  }
  outside = 0;
  for (auto bin = all.rbegin(); bin != all.rend(); ++bin) {
    range.max = bin->high;
    if ((outside += bin->count) > allowed) break;
  }
  return range;
}

std::vector<WeightedValue> Histogram::values() const {
  std::vector<WeightedValue> values;
  for (const Bin& bin : bins()) values.push_back({bin.low + (bin.high - bin.low) / 2, static_cast<double>(bin.count)});
  return values;
}

namespace {

/// How far the ends of a range have shrunk, in steps of 2^(1/128).
struct Shrinkage {
  int low = 0;
  int high = 0;
};

/// Down to a 215th.
constexpr int kMost = 992;

class RangeSearch {
 public:
  RangeSearch(const SquaredError& error, const GridOptions& options)
      : error_(error),
        options_(options),
        full_(widen_to_zero(error.extremes())),
        one_end_(options.symmetric || full_.min == 0 || full_.max == 0),
        least_(error_of({})) {}

  Range<float> run() {
    if (one_end_) {
      for (int by = 1; by <= kMost; ++by) try_one({by, by});
      return shrunken(best_);
    }
    look({0, 0}, kMost, 32);
    look({best_.low - 28, best_.high - 28}, 56, 4);
    look({best_.low - 3, best_.high - 3}, 6, 1);
    return shrunken(best_);
  }

 private:
  Range<float> shrunken(Shrinkage by) const {
    return {full_.min * std::exp2(static_cast<float>(-by.low) / 128),
            full_.max * std::exp2(static_cast<float>(-by.high) / 128)};
  }

  double error_of(Shrinkage by) const { return error_.of(grid_of(shrunken(by), options_)); }

  void try_one(Shrinkage by) {
    const double error = error_of(by);
    if (!(error < least_)) return;
    least_ = error;
    best_ = by;
  }

  /// Every combination of ends from `first` up to `reach` further.
  void look(Shrinkage first, int reach, int step) {
    for (int high = std::max(first.high, 0); high <= first.high + reach; high += step)
      for (int low = std::max(first.low, 0); low <= first.low + reach; low += step) try_one({low, high});
  }

  const SquaredError& error_;
  const GridOptions options_;
  const Range<float> full_;
  /// An end that is 0 has nowhere to go, and on symmetric grids the ends go together.
  const bool one_end_;
  Shrinkage best_;
  double least_;
};

}  // namespace

SquaredError::SquaredError(std::vector<WeightedValue> values) {
  std::ranges::sort(values, {}, &WeightedValue::value);
  values_.reserve(values.size());
  for (std::vector<double>* sums : {&counts_, &sums_, &squares_}) {
    sums->reserve(values.size() + 1);
    sums->push_back(0);
  }
  for (const WeightedValue& one : values) {
    const double value = one.value;
    values_.push_back(one.value);
    counts_.push_back(counts_.back() + one.count);
    sums_.push_back(sums_.back() + one.count * value);
    squares_.push_back(squares_.back() + one.count * value * value);
  }
}

double SquaredError::of(const Affine<float>& grid) const {
  double error = 0;
  for (std::size_t first = 0; first < values_.size();) {
    const float q = quantize(grid, values_[first]);
    const double real = dequantize(grid, q);
    std::size_t end = values_.size();
    if (q < grid.quant_max) {
      const double next = real + static_cast<double>(grid.scale) / 2;
      const auto found = std::lower_bound(values_.begin() + static_cast<std::ptrdiff_t>(first), values_.end(), next);
      end = std::max<std::size_t>(static_cast<std::size_t>(found - values_.begin()), first + 1);
    }
    error += squares_[end] - squares_[first] - 2 * real * (sums_[end] - sums_[first]) +
             real * real * (counts_[end] - counts_[first]);
    first = end;
  }
  return error;
}

Range<float> SquaredError::extremes() const {
  if (values_.empty()) return {};
  return {values_.front(), values_.back()};
}

Range<float> least_squares_range(const SquaredError& error, const GridOptions& options) {
  return RangeSearch(error, options).run();
}

}  // namespace miniqat::quantize
