#pragma once

#include <string>
#include <vector>

#include "bench/kernel_bench.h"
#include "bench/measure/this_machine.h"

namespace miniqat::bench {

/// A logarithmic axis that holds all values, and its ticks.
class PlotAxis {
 public:
  enum class Ticks { kPowersOfTen, kOneTwoFive };

  /// `values` must not be empty, and all positive.
  PlotAxis(const std::vector<double>& values, Ticks ticks);

  /// 0 at the lower end, 1 at the upper one.
  double place(double value) const;
  bool contains(double value) const { return value >= low_ && value <= high_; }
  /// The ticks within the axis, in order.
  std::vector<double> ticks() const;

 private:
  double low_, high_;
  Ticks kind_;
};

/// "1k", "16M", "0.5".
std::string tick_text(double value);

/// An SVG picture, light or dark as the reader's system is: elements a nanosecond against elements, both axes
/// logarithmic. There is a panel for each number of threads, width and layout. Each shows memcpy (dashed) and the sizes
/// at which x and y fill a cache. Colours tell operations, marks tell kernels. `title` is one line. Throws Error for
/// fewer than two sizes, which make no line.
std::string throughput_svg(const std::vector<KernelTime>& rows, const std::vector<Cache>& caches,
                           const std::string& title);

}  // namespace miniqat::bench
