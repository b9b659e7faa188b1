#include <cmath>

#include "labs/01-scale-and-zero-point/lab.h"
#include "labs/chart.h"
#include "quantize/affine.h"

namespace lab01 {
namespace {

namespace quantize = miniqat::quantize;

quantize::Affine<float> right_grid(float min, float max, int bits) {
  return quantize::grid_of<float>({min, max}, {.bits = bits});
}

lab::Numbers grid_with(float scale, float zero_point) { return {scale, zero_point}; }

int nearest(float v) { return static_cast<int>(std::lround(v)); }

struct Question {
  float min, max;
  int bits;
};

// No zero point lies on a tie: lab 2 has those.
const Question kQuestions[] = {{-1, 2, 4},    {-1, 2, 3},       {0, 6, 8}, {-0.7F, 0.3F, 2},
                               {-0.2F, 5, 8}, {-1.3F, 1.1F, 5}, {-3, 0, 4}};

/// With a wrong number of steps. 0 steps have an infinite scale, and 0 as zero point.
lab::Numbers grid_of_steps(const Question& q, int steps) {
  const float scale = (q.max - q.min) / static_cast<float>(steps);
  return grid_with(scale, nearest(-q.min / scale));
}

/// Powers of two as C++ does not write them: ^ is xor, and both ^ and << wait for the subtraction.
constexpr const char* kXor =
    "You write 2 ^ bits. In C++ ^ is no power but bitwise xor: 2 to the power of bits is 1 << bits, and there are (1 << bits) - 1 steps.";
constexpr const char* kPrecedence =
    "You divide by 2^(bits - 1), perhaps as 1 << bits - 1: C++ subtracts before it shifts. Write (1 << bits) - 1.";

lab::Case case_for(const Question& q, decltype(&grid_for) answer) {
  const auto right = right_grid(q.min, q.max, q.bits);
  const Grid got = answer(q.min, q.max, q.bits);
  const float steps = static_cast<float>((1 << q.bits) - 1);
  const float scale = (q.max - q.min) / steps, coarse = (q.max - q.min) / (steps + 1), one_sided = q.max / steps;
  return {.question = "range [" + lab::text(q.min) + ", " + lab::text(q.max) + "] at " + lab::text(q.bits) + " bits",
          .right = grid_with(right.scale, right.zero_point),
          .got = grid_with(got.scale, static_cast<float>(got.zero_point)),
          .mistaken = {grid_with(coarse, nearest(-q.min / coarse)), grid_with(scale, nearest(q.min / scale)),
                       grid_with(scale, static_cast<int>(-q.min / scale)),
                       grid_with(one_sided, one_sided > 0 ? nearest(-q.min / one_sided) : 0), grid_with(scale, 0),
                       grid_with(scale, nearest(-q.min * scale)),
                       grid_with(scale, nearest(-q.min / scale) - (1 << (q.bits - 1))),
                       grid_of_steps(q, 2 ^ (q.bits - 1)), grid_of_steps(q, (2 ^ q.bits) - 1),
                       grid_of_steps(q, 2 ^ q.bits), grid_of_steps(q, 1 << (q.bits - 1))}};
}

}  // namespace

void check(lab::Report& report, decltype(&grid_for) answer) {
  std::vector<lab::Case> cases;
  for (const Question& question : kQuestions) cases.push_back(case_for(question, answer));
  report.judge(
      "scale and zero point", cases,
      {"You divide by the number of integers, 2^bits. Between n integers there are n - 1 steps: 2^bits - 1.",
       "The sign of your zero point is wrong. min is negative or 0, and the zero point counts the steps from min up to 0: it is -min / scale, never negative.",
       "Your zero point is cut off, not rounded: a conversion to int drops the fraction. Use std::lround.",
       "Your scale ignores min. The grid reaches over the whole range, which is max - min wide.",
       "The scale is right, but your zero point is always 0. It is round(-min / scale): the number of steps from min up to 0.",
       "You multiply by the scale. The zero point is a number of steps: -min / scale.",
       "Your zero point is that of signed integers, which begin at -2^(bits - 1). Here they begin at 0.", kXor, kXor,
       kXor, kPrecedence});
}

void show(std::ostream& out) {
  const auto grid = right_grid(-1, 2, 4);
  out << "range [-1, 2] at 4 bits: scale " << lab::text(grid.scale) << ", zero point " << lab::text(grid.zero_point)
      << "\n      x      x / scale + zero point    q     real     error\n";
  for (const float x : {-1.0F, -0.45F, 0.0F, 0.37F, 1.13F, 2.0F}) {
    const float q = quantize::quantize(grid, x), real = quantize::dequantize(grid, q);
    out << lab::text(x, "%7.2f") << lab::text(x / grid.scale + grid.zero_point, "%20.2f") << lab::text(q, "%13.0f")
        << lab::text(real, "%9.2f") << lab::text(real - x, "%10.2f") << "\n";
  }
  for (const int bits : {8, 4, 3, 2}) {
    const auto other = right_grid(-1, 2, bits);
    out << bits << " bits: scale " << lab::text(other.scale, "%.4f") << ", zero point " << lab::text(other.zero_point)
        << ", largest rounding error " << lab::text(other.scale / 2, "%.4f") << "\n";
  }
  out << "at 3 bits -min / scale is " << lab::text(1 / right_grid(-1, 2, 3).scale, "%.2f") << "\n";
}

std::string figure() {
  const auto grid = right_grid(-1, 2, 4);
  lab::Chart chart("The range [-1, 2] at 4 bits: 16 numbers", {"x", -1.5, 2.5, {-1, 0, 1, 2}},
                   {"the number on the grid", -1.5, 2.5, {-1, 0, 1, 2}});
  chart.line({{-1.5, -1.5}, {2.5, 2.5}}, lab::Colour::kGrey, true);
  lab::Points stairs = {{-1.5, -1}}, grid_points;
  for (int q = 0; q < 16; ++q) {
    const double real = quantize::dequantize(grid, static_cast<float>(q)), half = grid.scale / 2.0;
    stairs.emplace_back(q == 0 ? -1.5 : real - half, real);
    stairs.emplace_back(q == 15 ? 2.5 : real + half, real);
    grid_points.emplace_back(real, real);
  }
  chart.line(stairs, lab::Colour::kBlue);
  chart.dots(grid_points, lab::Colour::kOrange, 3);
  chart.label(-1.35, 1.6, "dots: the 16 grid numbers", lab::Colour::kOrange);
  chart.label(-1.35, 1.25, "stairs: where each x goes", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab01
