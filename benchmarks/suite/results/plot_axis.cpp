#include "benchmarks/suite/results/plot_axis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace miniqat::benchmarks {

PlotAxis::PlotAxis(const std::vector<double>& values, Ticks ticks)
    : low_(std::ranges::min(values)), high_(std::ranges::max(values)), kind_(ticks) {
  // A little room at both ends, and never none at all.
  const double room = std::max(std::pow(high_ / low_, 0.04), 1.02);
  low_ /= room;
  high_ *= room;
}

double PlotAxis::place(double value) const { return std::log(value / low_) / std::log(high_ / low_); }

std::vector<double> PlotAxis::ticks() const {
  std::vector<double> found;
  for (double decade = std::pow(10, std::floor(std::log10(low_))); decade <= high_; decade *= 10)
    for (const double step : {1, 2, 5})
      if (contains(step * decade) && (step == 1 || kind_ == Ticks::kOneTwoFive)) found.push_back(step * decade);
  return found;
}

std::string tick_text(double value) {
  char text[32];
  const bool millions = value >= 1e6, thousands = value >= 1e3;
  std::snprintf(text, sizeof text, "%g%s",
                value / (millions    ? 1e6
                         : thousands ? 1e3
                                     : 1),
                millions    ? "M"
                : thousands ? "k"
                            : "");
  return text;
}

}  // namespace miniqat::benchmarks
