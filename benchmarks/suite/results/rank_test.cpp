#include "benchmarks/suite/results/rank_test.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace miniqat::benchmarks {
namespace {

struct Ranked {
  double value = 0;
  bool of_a = false;
};

}  // namespace

double rank_test(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  std::vector<Ranked> all;
  for (const double value : a) all.push_back({value, true});
  for (const double value : b) all.push_back({value, false});
  std::ranges::sort(all, {}, &Ranked::value);
  double rank_sum = 0, ties = 0;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    while (last < all.size() && all[last].value == all[first].value) ++last;
    // Equal values share the mean of their ranks, first + 1 to last.
    const double rank = static_cast<double>(first + 1 + last) / 2, count = static_cast<double>(last - first);
    for (std::size_t i = first; i < last; ++i) rank_sum += all[i].of_a ? rank : 0;
    ties += count * count * count - count;
  }
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size()), n = n_a + n_b;
  const double u = rank_sum - n_a * (n_a + 1) / 2;
  const double variance = n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;
  const double distance = std::max(0.0, std::abs(u - n_a * n_b / 2) - 0.5);
  return std::erfc(distance / std::sqrt(2 * variance));
}

}  // namespace miniqat::benchmarks
