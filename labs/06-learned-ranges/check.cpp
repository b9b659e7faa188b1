#include <algorithm>
#include <array>
#include <cmath>

#include "labs/06-learned-ranges/lab.h"
#include "labs/chart.h"
#include "quantize/reference/fake_quant.h"

namespace lab06 {
namespace {

namespace quantize = miniqat::quantize;

using Values = std::vector<float>;

quantize::Affine<float> affine(const Grid& grid, int bits) {
  return {.scale = grid.scale,
          .zero_point = static_cast<float>(grid.zero_point),
          .quant_min = 0,
          .quant_max = static_cast<float>((1 << bits) - 1),
          .nudged_min = grid.min,
          .nudged_max = grid.max};
}

Ends right_gradient(const Grid& grid, int bits, const Values& x, const Values& d_y) {
  const std::array<quantize::Affine<float>, 1> grids = {affine(grid, bits)};
  float d_min = 0, d_max = 0;
  quantize::reference::add_learned_gradients<float>(x, d_y.data(), grids, false, &d_min, &d_max);
  return {d_min, d_max};
}

/// The three sums that all answers are made of.
struct Sums {
  double below = 0, above = 0, inside = 0, outside = 0;
};

Sums sums_of(const Grid& grid, const Values& x, const Values& d_y) {
  Sums sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double rounding = d_y[i] * (double{fake_quantize(grid, x[i])} - x[i]);
    const bool is_below = x[i]<grid.min, is_above = x[i]> grid.max;
    if (is_below) sums.below += d_y[i];
    if (is_above) sums.above += d_y[i];
    (is_below || is_above ? sums.outside : sums.inside) += rounding;
  }
  return sums;
}

lab::Case case_for(float min, float max, int bits, unsigned seed,
                   Ends (*answer)(const Grid&, const Values&, const Values&)) {
  const Grid grid = grid_for(min, max, bits);
  const Values x = lab::bell(40, seed), d_y = lab::bell(40, seed + 100);
  const Ends right = right_gradient(grid, bits, x, d_y), got = answer(grid, x, d_y);
  const Sums s = sums_of(grid, x, d_y);
  const double width = double{grid.max} - grid.min, all = s.inside + s.outside;
  const auto with = [&](double share) { return lab::Numbers{s.below - share, s.above + share}; };
  return {
      .question = "grid from " + lab::text(grid.min) + " to " + lab::text(grid.max) + " at " + lab::text(bits) +
                  " bits, 40 numbers",
      .right = {right.d_min, right.d_max},
      .got = {got.d_min, got.d_max},
      .mistaken = {with(0), with(-s.inside / width), with(all / width), with(s.inside), with(s.inside / grid.scale)}};
}

/// The gradient after max of the mean of (y - x)^2 over |x|, in its two parts, at 2 bits.
struct Balance {
  double rounding = 0, clipping = 0, error = 0;
};

Balance balance_at(double max) {
  const Grid grid = grid_for(0, static_cast<float>(max), 2);
  Values x = lab::bell(400, 5), d_y;
  Balance balance;
  for (float& value : x) {
    value = std::abs(value);
    const double off = double{fake_quantize(grid, value)} - value;
    d_y.push_back(static_cast<float>(2 * off / 400));
    balance.error += off * off / 400;
  }
  const Ends ends = right_gradient(grid, 2, x, d_y);
  balance.rounding = -ends.d_min;
  balance.clipping = ends.d_max + ends.d_min;
  return balance;
}

/// Where descent comes to rest.
double learned_max() {
  double max = 4;
  for (int step = 0; step < 400; ++step) {
    const Balance balance = balance_at(max);
    max -= 0.5 * (balance.rounding + balance.clipping);
  }
  return max;
}

}  // namespace

Grid grid_for(float min, float max, int bits) {
  const quantize::Affine<float> grid = quantize::grid_of<float>({min, max}, {.bits = bits});
  return {grid.scale, static_cast<int>(grid.zero_point), grid.nudged_min, grid.nudged_max};
}

float fake_quantize(const Grid& grid, float x) {
  const float inside = std::clamp(x, grid.min, grid.max), zero_point = static_cast<float>(grid.zero_point);
  return grid.scale * (std::floor((inside - grid.min) / grid.scale + 0.5F) - zero_point);
}

void check(lab::Report& report, Ends (*answer)(const Grid& grid, const Values& x, const Values& d_y)) {
  report.judge(
      "d_min and d_max",
      {case_for(-1, 1.5F, 2, 11, answer), case_for(-0.5F, 1, 4, 12, answer), case_for(-3, 3, 3, 13, answer),
       case_for(0, 1, 8, 14, answer)},
      {"You have only the numbers beyond the range. Those inside count, too: with the range the step grows, "
       "and with it their rounding error. Add d_y * (y - x) / (max - min) to d_max, and take it off d_min.",
       "Your rounding term has the wrong sign. Inside, y - x grows with max: d_y * (y - x) / (max - min) is "
       "added to d_max and taken off d_min.",
       "Numbers beyond the range have no rounding error: y is an end of the grid and follows it. Give them "
       "d_y alone, and the rounding term to the numbers inside.",
       "You do not divide by the width. y = x + s * r with s = (max - min) / steps, so the derivative after "
       "max is r / steps, which is (y - x) / (max - min).",
       "You divide by the scale. (y - x) / s is the derivative after the scale; after max it is smaller by the "
       "number of steps: (y - x) / (max - min)."});
}

void show(std::ostream& out) {
  const Grid grid = grid_for(-1, 2, 2);
  const Values x = {-1.4F, -0.7F, 0.2F, 1.4F, 2.5F}, d_y = {1, 1, 1, 1, 1};
  out << "range [-1, 2] at 2 bits\n     x     y    in d_min    in d_max\n";
  for (const float value : x) {
    const Ends one = right_gradient(grid, 2, {value}, {1});
    out << lab::text(value, "%6.1f") << lab::text(fake_quantize(grid, value), "%6.1f") << lab::text(one.d_min, "%12.3f")
        << lab::text(one.d_max, "%12.3f") << "\n";
  }
  const Ends sum = right_gradient(grid, 2, x, d_y);
  out << " sum      " << lab::text(sum.d_min, "%14.3f") << lab::text(sum.d_max, "%12.3f") << "\n";
  out << "  max    error    from rounding    from clipping    d_max\n";
  for (const double max : {4.0, 3.0, 2.5, 2.0, 1.5, 1.0}) {
    const Balance balance = balance_at(max);
    out << lab::text(max, "%5.1f") << lab::text(balance.error, "%9.4f") << lab::text(balance.rounding, "%17.4f")
        << lab::text(balance.clipping, "%17.4f") << lab::text(balance.rounding + balance.clipping, "%9.4f") << "\n";
  }
  const double rest = learned_max();
  out << "descent from 4.0 comes to rest at max " << lab::text(rest, "%.2f") << ", error "
      << lab::text(balance_at(rest).error, "%.4f") << "\n";
}

std::string figure() {
  lab::Chart chart("The two parts of d_max at 2 bits", {"max", 1, 4, {1, 1.5, 2, 2.5, 3, 3.5, 4}},
                   {"gradient", -0.3, 0.1, {-0.3, -0.2, -0.1, 0, 0.1}});
  lab::Points rounding, clipping, sum;
  for (int i = 0; i <= 60; ++i) {
    const double max = 1 + 0.05 * i;
    const Balance balance = balance_at(max);
    rounding.emplace_back(max, balance.rounding);
    clipping.emplace_back(max, balance.clipping);
    sum.emplace_back(max, balance.rounding + balance.clipping);
  }
  chart.line({{1, 0}, {4, 0}}, lab::Colour::kGrey);
  chart.line(rounding, lab::Colour::kOrange);
  chart.line(clipping, lab::Colour::kGreen);
  chart.line(sum, lab::Colour::kBlue, true);
  chart.label(3.0, 0.08, "rounding: a smaller max", lab::Colour::kOrange);
  chart.label(1.55, -0.2, "clipping: a larger max", lab::Colour::kGreen);
  chart.label(2.0, -0.1, "dashed: their sum", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab06
