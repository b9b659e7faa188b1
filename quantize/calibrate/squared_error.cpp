#include "quantize/calibrate/squared_error.h"

#include <algorithm>
#include <cmath>

namespace miniqat::quantize {
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
