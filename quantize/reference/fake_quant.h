#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "quantize/affine.h"
#include "quantize/range_observer.h"

// The specification of FakeQuant, over float and double. Element i of a tensor belongs to channel i % channels, and
// grids[c] is the grid of channel c; per tensor there is one channel.
namespace miniqat::quantize::reference {

template <class T>
Observation<T> observe(std::span<const T> x, std::int64_t channels, ScratchScope& scope) {
  const T infinity = std::numeric_limits<T>::infinity();
  Observation<T> result{scope.filled<Range<T>>(static_cast<std::size_t>(channels), {infinity, -infinity})};
  for (std::size_t i = 0; i < x.size(); ++i) {
    Range<T>& range = result.ranges[i % channels];
    if (std::isnan(x[i])) result.has_nan = true;
    if (x[i] < range.min) range.min = x[i];
    if (x[i] > range.max) range.max = x[i];
  }
  return result;
}

/// y may be x.
template <class T>
void fake_quant_forward(std::span<const T> x, std::span<const Affine<T>> grids, T* y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = fake_quantize(grids[i % grids.size()], x[i]);
}

/// dx = dy where the gradient passes, else 0. d_min[c] sums dy where x < nudged_min, d_max[c] where x > nudged_max;
/// an empty grid has neither. dx may be dy, and any of the results null.
template <class T>
void fake_quant_backward(std::span<const T> x, const T* dy, std::span<const Affine<T>> grids, T* dx, T* d_min,
                         T* d_max) {
  for (std::size_t c = 0; c < grids.size(); ++c) {
    const Affine<T>& grid = grids[c];
    double below = 0, above = 0;
    for (std::size_t i = c; i < x.size(); i += grids.size()) {
      if (!grid.empty() && x[i] < grid.nudged_min) below += dy[i];
      if (!grid.empty() && x[i] > grid.nudged_max) above += dy[i];
      if (dx) dx[i] = gradient_passes(grid, x[i]) ? dy[i] : T(0);
    }
    if (d_min) d_min[c] = static_cast<T>(below);
    if (d_max) d_max[c] = static_cast<T>(above);
  }
}

/// dx += factor * (x - y) inside the range, y being x rounded; an empty grid gets nothing.
template <class T>
void add_dampening(std::span<const T> x, std::span<const Affine<T>> grids, double factor, T* dx) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Affine<T>& grid = grids[i % grids.size()];
    if (!grid.empty() && x[i] >= grid.nudged_min && x[i] <= grid.nudged_max)
      dx[i] += static_cast<T>(factor) * (x[i] - fake_quantize(grid, x[i]));
  }
}

/// From the gradients of the ends of grids to those of the stored ends, which move by the same factors.
template <class T>
void pass_to_stored_ends(std::span<const Range<T>> ranges, std::span<const Affine<T>> grids, T* d_min, T* d_max) {
  for (std::size_t c = 0; c < grids.size(); ++c) {
    if (d_min && ranges[c].min != 0) d_min[c] *= grids[c].nudged_min / ranges[c].min;
    if (d_max && ranges[c].max != 0) d_max[c] *= grids[c].nudged_max / ranges[c].max;
  }
}

/// What a learned range adds to d_min and d_max: per channel, the sum I of dy * (y - x) / width inside the range, taken
/// off d_min and added to d_max. In a symmetric range both ends then share the derivative after the logarithm of its
/// width. An empty grid, and a null result, get nothing. (Here the width is that of the grid, which has rounded ends.)
template <class T>
void add_learned_gradients(std::span<const T> x, const T* dy, std::span<const Affine<T>> grids, bool symmetric,
                           T* d_min, T* d_max) {
  for (std::size_t c = 0; c < grids.size(); ++c) {
    const Affine<T>& grid = grids[c];
    if (grid.empty()) continue;
    double inside = 0, below = 0, above = 0;
    for (std::size_t i = c; i < x.size(); i += grids.size()) {
      if (x[i] < grid.nudged_min)
        below += dy[i];
      else if (x[i] > grid.nudged_max)
        above += dy[i];
      else if (x[i] >= grid.nudged_min)
        inside += dy[i] * (fake_quantize(grid, x[i]) - x[i]);
    }
    const double low = grid.nudged_min, high = grid.nudged_max, share = inside / (high - low);
    const double of_width = low * (below - share) + high * (above + share);
    if (d_min) d_min[c] = static_cast<T>(symmetric ? of_width / (2 * low) : below - share);
    if (d_max) d_max[c] = static_cast<T>(symmetric ? of_width / (2 * high) : above + share);
  }
}

}  // namespace miniqat::quantize::reference
