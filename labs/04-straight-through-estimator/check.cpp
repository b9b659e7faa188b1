#include <algorithm>
#include <cmath>

#include "labs/04-straight-through-estimator/lab.h"
#include "labs/chart.h"
#include "quantize/affine.h"

namespace lab04 {
namespace {

namespace quantize = miniqat::quantize;

using Values = std::vector<float>;

quantize::Affine<float> right_grid(float min, float max, int bits) {
  return quantize::grid_of<float>({min, max}, {.bits = bits});
}

/// d_y where `passes` says so of x, times `factor`.
template <class Passes>
lab::Numbers where(const Values& x, const Values& d_y, Passes passes, double factor = 1) {
  lab::Numbers d_x;
  for (std::size_t i = 0; i < x.size(); ++i) d_x.push_back(passes(x[i]) ? factor * d_y[i] : 0);
  return d_x;
}

lab::Case case_for(float min, float max, int bits, Values (*answer)(const Grid&, const Values&, const Values&)) {
  const quantize::Affine<float> right = right_grid(min, max, bits);
  const Grid grid = grid_for(min, max, bits);
  const float low = grid.nudged_min, high = grid.nudged_max;
  const Values x = {2 * low - 1, low - 0.01F, low, low + 0.01F, 0.1F, high - 0.01F, high, high + 0.01F, 2 * high + 1};
  const Values d_y = {1, 2, 3, -4, 5, -6, 7, 8, -9};
  const auto never = [](float) { return false; };
  const auto always = [](float) { return true; };
  const auto inside = [&](float v) { return v >= low && v <= high; };
  const auto between = [&](float v) { return v > low && v < high; };
  const auto rounds_between = [&](float v) { return between(fake_quantize(grid, v)); };
  return {.question = "x = " + lab::text(lab::numbers(x)) + ", grid from " + lab::text(low) + " to " + lab::text(high),
          .right = where(x, d_y, [&](float v) { return quantize::gradient_passes(right, v); }),
          .got = lab::numbers(answer(grid, x, d_y)),
          .mistaken = {where(x, d_y, never), where(x, d_y, always), where(x, d_y, between),
                       where(x, d_y, inside, grid.scale), where(x, d_y, rounds_between)}};
}

struct Path {
  double w = 0, y = 0, loss = 0;
};

/// Gradient descent on (y - 0.72)^2 with y = fake_quantize(w), from w = 0.1, by the straight-through estimator or by
/// the true derivative, which is 0.
std::vector<Path> descend(bool straight_through) {
  const quantize::Affine<float> grid = right_grid(-1, 1, 3);
  std::vector<Path> path;
  double w = 0.1;
  for (int step = 0; step <= 12; ++step) {
    const double y = quantize::fake_quantize(grid, static_cast<float>(w)), error = y - 0.72;
    path.push_back({w, y, error * error});
    if (straight_through) w -= 0.1 * 2 * error;
  }
  return path;
}

}  // namespace

Grid grid_for(float min, float max, int bits) {
  const quantize::Affine<float> grid = right_grid(min, max, bits);
  return {grid.scale, static_cast<int>(grid.zero_point), grid.nudged_min, grid.nudged_max};
}

float fake_quantize(const Grid& grid, float x) {
  const float zero_point = static_cast<float>(grid.zero_point);
  const float inside = std::clamp(x, grid.nudged_min, grid.nudged_max);
  return grid.scale * (std::floor(inside / grid.scale + zero_point + 0.5F) - zero_point);
}

void check(lab::Report& report, Values (*answer)(const Grid& grid, const Values& x, const Values& d_y)) {
  report.judge(
      "d_x", {case_for(-1, 2, 3, answer), case_for(-1, 1, 8, answer), case_for(0, 6, 4, answer)},
      {"All of your gradients are 0. That is the true derivative of a staircase; with it no weight ever moves. "
       "Let d_y pass as if there were no rounding.",
       "Your gradient passes everywhere. Where x was cut to an end of the grid, y does not follow x: d_x is 0.",
       "Your gradient stops at the ends of the grid. A number that is an end was not cut: d_y passes there, "
       "too (>= and <=).",
       "You multiply by the scale. y is a real number like x, not an integer: dy/dx is 1 inside.",
       "You look at y instead of x. A number in the outermost half step rounds to an end without being cut: "
       "compare x itself with nudged_min and nudged_max."});
}

void show(std::ostream& out) {
  const quantize::Affine<float> grid = right_grid(-1, 2, 3);
  out << "range [-1, 2] at 3 bits: scale " << lab::text(grid.scale, "%.3f") << ", grid from "
      << lab::text(grid.nudged_min, "%.3f") << " to " << lab::text(grid.nudged_max, "%.3f")
      << "\n      x        y    d_y    d_x\n";
  for (const float x : {-0.95F, -0.80F, 0.10F, 2.10F, 2.20F})
    out << lab::text(x, "%7.2f") << lab::text(quantize::fake_quantize(grid, x), "%9.3f") << "    0.5"
        << lab::text(quantize::gradient_passes(grid, x) ? 0.5 : 0, "%7.1f") << "\n";
  const std::vector<Path> path = descend(true);
  out << "rate 0.1, target 0.72\nstep       w       y    loss\n";
  for (std::size_t step = 0; step < path.size(); step += 2)
    out << lab::text(static_cast<double>(step), "%4.0f") << lab::text(path[step].w, "%8.3f")
        << lab::text(path[step].y, "%8.3f") << lab::text(path[step].loss, "%8.4f") << "\n";
}

std::string figure() {
  lab::Chart chart("Descent towards 0.72 through a 3-bit staircase", {"step", 0, 12, {0, 2, 4, 6, 8, 10, 12}},
                   {"w (line) and its number on the grid (dots)", 0, 1, {0, 0.2, 0.4, 0.6, 0.8, 1}});
  lab::Points weights, grid_points, stuck;
  const std::vector<Path> path = descend(true), without = descend(false);
  for (std::size_t step = 0; step < path.size(); ++step) {
    weights.emplace_back(step, path[step].w);
    grid_points.emplace_back(step, path[step].y);
    stuck.emplace_back(step, without[step].w);
  }
  chart.line({{0, 0.72}, {12, 0.72}}, lab::Colour::kGrey, true);
  chart.line(stuck, lab::Colour::kOrange);
  chart.line(weights, lab::Colour::kBlue);
  chart.dots(grid_points, lab::Colour::kBlue);
  chart.label(0.2, 0.74, "target", lab::Colour::kGrey);
  chart.label(7, 0.13, "true derivative: stuck", lab::Colour::kOrange);
  chart.label(7, 0.93, "straight through", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab04
