#pragma once

#include <string>
#include <vector>

namespace miniqat::benchmarks {

/// A logarithmic axis that holds all values, and its ticks.
class PlotAxis {
 public:
  enum class Ticks { kPowersOfTen, kOneTwoFive };

  /// `values` must not be empty, and all positive.
  PlotAxis(const std::vector<double>& values, Ticks ticks);

  /// 0 at the lower end, 1 at the upper one.
  double place(double value) const;
  bool contains(double value) const { return value >= low_ && value <= high_; }
  /// Those within, in order.
  std::vector<double> ticks() const;

 private:
  double low_, high_;
  Ticks kind_;
};

/// "1k", "16M", "0.5".
std::string tick_text(double value);

}  // namespace miniqat::benchmarks
