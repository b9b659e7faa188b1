#include <algorithm>
#include <cmath>

#include "labs/02-rounding-and-nudging/lab.h"
#include "labs/chart.h"
#include "quantize/affine.h"

namespace lab02 {
namespace {

namespace quantize = miniqat::quantize;

struct Question {
  float min, max;
  int bits;
  float x;
};

const Question kQuestions[] = {
    {-1, 2, 3, 0},     {-1, 2, 3, 1.6F}, {-1, 2, 3, -0.95F}, {-1, 2, 4, 0.37F}, {-1, 2, 4, 0.31F},
    {-1, 2, 4, 7},     {-1, 2, 4, -7},   {1, 3, 4, 1.23F},   {1, 3, 4, 2.98F},  {-3, -1, 4, -2.25F},
    {-8, 7, 4, -2.5F}, {-8, 7, 4, 2.5F}, {-8, 7, 4, -3.5F},  {-1, 1, 2, 0.2F},
};

quantize::Affine<float> right_grid(float min, float max, int bits) {
  return quantize::grid_of<float>({min, max}, {.bits = bits});
}

double rounded(double v) { return std::floor(v + 0.5); }

/// A range whose 0 is wherever it falls: what a grid without nudging makes of x.
double without_nudging(const Question& q) {
  const double low = std::min(q.min, 0.0F), high = std::max(q.max, 0.0F), scale = (high - low) / ((1 << q.bits) - 1);
  return low + scale * rounded((std::clamp<double>(q.x, low, high) - low) / scale);
}

/// On `grid`, with q made by `round` and then cut to the integers or not.
double on_grid(const Grid& grid, const Question& q, double (*round)(double), bool clamps) {
  double integer = round(q.x / grid.scale + grid.zero_point);
  if (clamps) integer = std::clamp(integer, 0.0, std::exp2(q.bits) - 1);
  return grid.scale * (integer - grid.zero_point);
}

/// What is right but for the largest integer, which is `top`: below 0 std::clamp gives top, other functions 0.
double cut_to(const Grid& grid, const Question& q, int top, bool is_clamp) {
  const double integer = rounded(q.x / grid.scale + grid.zero_point), below = std::min<double>(integer, top);
  return grid.scale *
         ((is_clamp ? std::min<double>(std::max(integer, 0.0), top) : std::max(below, 0.0)) - grid.zero_point);
}

constexpr const char* kXor =
    "You write 2 ^ bits. In C++ ^ is no power but bitwise xor: 2 to the power of bits is 1 << bits, and the largest integer is (1 << bits) - 1.";
constexpr const char* kPrecedence =
    "You cut q to 2^(bits - 1), perhaps as 1 << bits - 1: C++ subtracts before it shifts. Write (1 << bits) - 1.";

double ties_away(const Grid& grid, const Question& q) {
  const double integer = std::round(q.x / grid.scale) + grid.zero_point;
  return grid.scale * (std::clamp(integer, 0.0, std::exp2(q.bits) - 1) - grid.zero_point);
}

lab::Case case_for(const Question& q, decltype(&fake_quantize) answer) {
  const Grid grid = grid_for(std::min(q.min, 0.0F), std::max(q.max, 0.0F), q.bits);
  const Grid narrow = grid_for(q.min, q.max, q.bits);
  return {.question = lab::text(q.x) + " in [" + lab::text(q.min) + ", " + lab::text(q.max) + "] at " +
                      lab::text(q.bits) + " bits",
          .right = {quantize::fake_quantize(right_grid(q.min, q.max, q.bits), q.x)},
          .got = {answer(q.min, q.max, q.bits, q.x)},
          .mistaken = {{without_nudging(q)},
                       {on_grid(grid, q, std::trunc, true)},
                       {on_grid(grid, q, rounded, false)},
                       {on_grid(narrow, q, rounded, true)},
                       {ties_away(grid, q)},
                       {on_grid(grid, q, std::nearbyint, true)},
                       {std::clamp(rounded(q.x / grid.scale + grid.zero_point), 0.0, std::exp2(q.bits) - 1)},
                       {grid.scale * (std::clamp(rounded(q.x / grid.scale), 0.0, std::exp2(q.bits) - 1))},
                       {cut_to(grid, q, 2 ^ (q.bits - 1), true)},
                       {cut_to(grid, q, (2 ^ q.bits) - 1, true)},
                       {cut_to(grid, q, (2 ^ q.bits) - 1, false)},
                       {cut_to(grid, q, 2 ^ q.bits, true)},
                       {cut_to(grid, q, 1 << (q.bits - 1), true)}}};
}

}  // namespace

Grid grid_for(float min, float max, int bits) {
  const double width = double{max} - min, steps = (1 << bits) - 1;
  return {static_cast<float>(width / steps), static_cast<int>(std::lround(-min * steps / width))};
}

void check(lab::Report& report, decltype(&fake_quantize) answer) {
  std::vector<lab::Case> cases;
  for (const Question& question : kQuestions) cases.push_back(case_for(question, answer));
  report.judge(
      "the number on the grid", cases,
      {"Your grid begins at min, and 0 falls between two of its numbers. Take the grid of the whole-numbered zero point: scale * (q - zero_point). It begins at -scale * zero_point.",
       "You cut off the fraction instead of rounding: a conversion to int goes towards 0. Use std::floor(v + 0.5F).",
       "You do not cut q to the integers that there are, 0 to 2^bits - 1. Numbers beyond the grid become its ends.",
       "You do not widen a range that lies on one side of 0. Begin with min(min, 0) and max(max, 0).",
       "Your ties go away from 0, as std::round has it: -2.5 becomes -3. Here they go upwards, to -2: std::floor(v + 0.5F). Integers round so with an addition and a shift (lab 7).",
       "Your ties go to the even integer, as std::nearbyint and Python's round have it. Here they go upwards: std::floor(v + 0.5F).",
       "You return the integer q. Fake quantization goes back to the number that it stands for: scale * (q - zero_point).",
       "You leave out the zero point. q = round(x / scale + zero_point), and back scale * (q - zero_point).", kXor,
       kXor, kXor, kXor, kPrecedence});
}

void show(std::ostream& out) {
  const auto grid = right_grid(-1, 2, 3);
  out << "range [-1, 2] at 3 bits: scale " << lab::text(grid.scale, "%.4f") << ", -min / scale is "
      << lab::text(1 / grid.scale, "%.2f") << ", zero point " << lab::text(grid.zero_point) << "\n"
      << "q                  0       1       2       3       4       5       6       7\nnot nudged  ";
  for (int q = 0; q < 8; ++q) out << lab::text(-1 + q * grid.scale, "%8.3f");
  out << "\nnudged      ";
  for (int q = 0; q < 8; ++q) out << lab::text(quantize::dequantize(grid, static_cast<float>(q)), "%8.3f");
  out << "\nnudged range [" << lab::text(grid.nudged_min, "%.3f") << ", " << lab::text(grid.nudged_max, "%.3f")
      << "]\n";
  for (const float x : {0.0F, 1.6F, 2.6F, -0.95F})
    out << lab::text(x, "%5.2f") << "  not nudged " << lab::text(without_nudging({-1, 2, 3, x}), "%6.3f")
        << "   nudged " << lab::text(quantize::fake_quantize(grid, x), "%6.3f") << "\n";
  out << "-2.5 on the grid of [-8, 7] at 4 bits, whose scale is 1: "
      << lab::text(quantize::fake_quantize(right_grid(-8, 7, 4), -2.5F)) << "\n";
  out << "1.6 / scale + zero point is " << lab::text(1.6 / grid.scale + grid.zero_point, "%.2f")
      << "; 2.6: " << lab::text(2.6 / grid.scale + grid.zero_point, "%.2f") << "\n";
}

std::string figure() {
  const auto grid = right_grid(-1, 2, 3);
  lab::Chart chart("The range [-1, 2] at 3 bits", {"real numbers", -1.2, 2.4, {-1, 0, 1, 2}}, {"", 0, 3, {}});
  lab::Points before, after;
  for (int q = 0; q < 8; ++q) {
    before.emplace_back(-1 + q * double{grid.scale}, 2);
    after.emplace_back(quantize::dequantize(grid, static_cast<float>(q)), 1);
  }
  chart.line({{0, 0}, {0, 2.6}}, lab::Colour::kGreen, true);
  chart.line({before.front(), before.back()}, lab::Colour::kGrey);
  chart.line({after.front(), after.back()}, lab::Colour::kGrey);
  chart.dots(before, lab::Colour::kOrange, 6);
  chart.dots(after, lab::Colour::kBlue, 6);
  chart.label(0.3, 2.3, "from min to max: no dot at 0", lab::Colour::kOrange);
  chart.label(0.3, 1.3, "nudged: a dot at 0", lab::Colour::kBlue);
  chart.label(0.03, 0.15, "0", lab::Colour::kGreen);
  return chart.svg();
}

}  // namespace lab02
