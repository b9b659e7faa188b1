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

/// A typical mistake: what it makes of one number and of the gradient that arrives there.
struct Mistake {
  float (*d_x)(const Grid& grid, float x, float d_y);
  const char* hint;
};

bool inside(const Grid& grid, float v) { return v >= grid.nudged_min && v <= grid.nudged_max; }
bool between(const Grid& grid, float v) { return v > grid.nudged_min && v < grid.nudged_max; }

constexpr const char* kEnds =
    "Your gradient stops at the ends of the grid. A number that is an end was not cut: d_y passes there, too. Inside is x >= nudged_min and x <= nudged_max; outside is x < nudged_min or x > nudged_max.";
constexpr const char* kMinEnd =
    "Your gradient stops at nudged_min. A number that is this end was not cut: d_y passes there, too, as it does at your nudged_max. Inside is x >= nudged_min; outside is x < nudged_min.";
constexpr const char* kMaxEnd =
    "Your gradient stops at nudged_max. A number that is this end was not cut: d_y passes there, too, as it does at your nudged_min. Inside is x <= nudged_max; outside is x > nudged_max.";
constexpr const char* kOneEnd =
    "You look at one end only. x can be cut at both: below nudged_min and above nudged_max d_x is 0.";
constexpr const char* kResult =
    "You look at y instead of x. A number in the outermost half step rounds to an end without being cut: compare x itself with nudged_min and nudged_max.";
constexpr const char* kInverted =
    "You have it the wrong way round: inside of the range d_y passes, outside it does not. The ends are inside.";
constexpr const char* kScale =
    "You multiply by the scale, or divide by it. y is a real number like x, not an integer: dy/dx is 1 inside.";

const Mistake kMistakes[] = {
    {[](const Grid&, float, float) { return 0.0F; },
     "All of your gradients are 0. That is the true derivative of a staircase; with it no weight ever moves. Let d_y pass as if there were no rounding."},
    {[](const Grid&, float, float d_y) { return d_y; },
     "Your gradient passes everywhere. Where x was cut to an end of the grid, y does not follow x: d_x is 0."},
    {[](const Grid& grid, float x, float d_y) { return between(grid, x) ? d_y : 0; }, kEnds},
    {[](const Grid& grid, float x, float d_y) { return inside(grid, x) && x < grid.nudged_max ? d_y : 0; }, kMaxEnd},
    {[](const Grid& grid, float x, float d_y) { return inside(grid, x) && x > grid.nudged_min ? d_y : 0; }, kMinEnd},
    {[](const Grid& grid, float x, float d_y) { return inside(grid, x) ? d_y * grid.scale : 0; }, kScale},
    {[](const Grid& grid, float x, float d_y) { return inside(grid, x) ? d_y / grid.scale : 0; }, kScale},
    {[](const Grid& grid, float x, float d_y) { return between(grid, fake_quantize(grid, x)) ? d_y : 0; }, kResult},
    {[](const Grid& grid, float x, float d_y) { return fake_quantize(grid, x) > grid.nudged_min ? d_y : 0; }, kResult},
    {[](const Grid& grid, float x, float d_y) { return fake_quantize(grid, x) < grid.nudged_max ? d_y : 0; }, kResult},
    {[](const Grid& grid, float x, float d_y) { return x <= grid.nudged_max ? d_y : 0; }, kOneEnd},
    {[](const Grid& grid, float x, float d_y) { return x >= grid.nudged_min ? d_y : 0; }, kOneEnd},
    {[](const Grid& grid, float x, float d_y) { return x < grid.nudged_max ? d_y : 0; }, kOneEnd},
    {[](const Grid& grid, float x, float d_y) { return x > grid.nudged_min ? d_y : 0; }, kOneEnd},
    {[](const Grid& grid, float x, float d_y) { return inside(grid, x) ? 0 : d_y; }, kInverted},
    {[](const Grid& grid, float x, float d_y) { return between(grid, x) ? 0 : d_y; }, kInverted},
    {[](const Grid& grid, float x, float) { return inside(grid, x) ? 1.0F : 0; },
     "You return dy/dx. The chain rule multiplies it by the gradient that arrives: d_x = d_y where it is 1."},
    {[](const Grid& grid, float x, float) { return fake_quantize(grid, x); },
     "You return y, the result of the forward pass. What is asked for is its gradient."},
    {[](const Grid& grid, float x, float d_y) { return inside(grid, x) ? fake_quantize(grid, d_y) : 0; },
     "You round d_y to the grid. Only numbers of the forward pass lie on it; gradients are floats, and pass as they are."},
    {[](const Grid& grid, float, float d_y) { return inside(grid, d_y) ? d_y : 0; },
     "You compare d_y with the ends of the grid. x decides whether d_y passes."},
    {[](const Grid& grid, float, float d_y) { return std::clamp(d_y, grid.nudged_min, grid.nudged_max); },
     "You cut d_y to the ends of the grid. It passes as it is, or not at all; x decides."}};

lab::Case case_for(float min, float max, int bits, decltype(&straight_through) answer) {
  const quantize::Affine<float> right = right_grid(min, max, bits);
  const Grid grid = grid_for(min, max, bits);
  const float low = grid.nudged_min, high = grid.nudged_max;
  const Values x = {2 * low - 1, low - 0.01F, low, low + 0.01F, 0.1F, high - 0.01F, high, high + 0.01F, 2 * high + 1};
  const Values d_y = {1, 2, 3, -4, 5, -6, 7, 8, -9};
  lab::Case result = {.question = "d_y = " + lab::text(lab::numbers(d_y)) + " at x = " + lab::text(lab::numbers(x)) +
                                  ", grid from " + lab::text(low) + " to " + lab::text(high),
                      .right = {},
                      .got = lab::numbers(answer(grid, x, d_y)),
                      .mistaken = std::vector<lab::Numbers>(std::size(kMistakes)),
                      .inputs = lab::numbers(x)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.right.push_back(quantize::gradient_passes(right, x[i]) ? d_y[i] : 0);
    for (std::size_t m = 0; m < std::size(kMistakes); ++m)
      result.mistaken[m].push_back(kMistakes[m].d_x(grid, x[i], d_y[i]));
  }
  return result;
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

void check(lab::Report& report, decltype(&straight_through) answer) {
  report.judge("d_x", {case_for(-1, 2, 3, answer), case_for(-1, 1, 8, answer), case_for(0, 6, 4, answer)},
               lab::hints_of(kMistakes));
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
