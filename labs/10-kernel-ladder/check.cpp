#include <algorithm>
#include <cmath>
#include <limits>

#include "labs/10-kernel-ladder/lab.h"
#include "labs/chart.h"
#include "quantize/affine.h"

namespace lab10 {
namespace {

namespace quantize = miniqat::quantize;

using Kernel = void (*)(const float*, float*, std::int64_t, const fake_quant_grid*, std::int64_t);
using Affine = quantize::Affine<float>;
using Values = std::vector<float>;

/// Stands before and behind y.
constexpr float kGuard = -12345;

/// How a mistake moves x, element i of n, to its grid.
using Way = float (*)(const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x);

float steps_of(const Affine& grid, float x) {
  return std::clamp(x, grid.nudged_min, grid.nudged_max) - grid.nudged_min;
}

const Affine& own(const std::vector<Affine>& grids, std::size_t i) { return grids[i % grids.size()]; }

float cut(const Affine& grid, float x) { return std::clamp(x, grid.nudged_min, grid.nudged_max); }

/// The right number for element i.
float right(const std::vector<Affine>& grids, std::size_t i, float x) {
  return quantize::fake_quantize(own(grids, i), x);
}

float by_product(const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
  const Affine& grid = own(grids, i);
  return quantize::dequantize(grid, grid.quant_min + std::floor(steps_of(grid, x) * (1 / grid.scale) + 0.5F));
}

/// The first numbers alone, as many as `whole` divides.
template <std::size_t kWhole>
float in_wholes(const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x) {
  return i < n / kWhole * kWhole ? right(grids, i, x) : 0.0F;
}

struct Mistake {
  Way way;
  const char* hint;
};

constexpr const char* kTail =
    "You leave out the tail. n need not be a multiple of 8, or of any number: the last numbers need a loop of their own.";
constexpr const char* kLab2 =
    "You use the formula of lab 2, x / scale + zero_point. In float32 it rounds elsewhere, and some ties go the other way. This page's formula divides (clamped - nudged_min) by the scale.";

const Mistake kMistakes[] = {
    {by_product, "You multiply by 1 / scale. That rounds twice, and some ties go the other way: divide."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return quantize::dequantize(grid, grid.quant_min + std::nearbyint(steps_of(grid, x) / grid.scale));
     },
     "Your ties go to even, as std::nearbyint and the processor's rounding have it. Here they go upwards: std::floor(v + 0.5F)."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return quantize::dequantize(grid, grid.quant_min + std::round(steps_of(grid, x) / grid.scale));
     },
     "You use std::round. It differs from std::floor(v + 0.5F) just below a half: 0.49999997F + 0.5F is rounded to 1. The bits must be the same."},
    {in_wholes<8>, kTail},
    {in_wholes<4>, kTail},
    {in_wholes<16>, kTail},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x) {
       return i + 1 < n ? right(grids, i, x) : 0.0F;
     },
     kTail},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x) {
       return i < n / grids.size() * grids.size() ? right(grids, i, x) : 0.0F;
     },
     "You leave out the last row. n need not be a multiple of the channels: a row may end after a few of them."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       return right(grids, i, std::isnan(x) ? own(grids, i).nudged_min : x);
     },
     "You lose NaNs. std::max(a, x) gives a if x is a NaN; x < a ? a : x keeps it. A NaN in training must not become an innocent number."},
    {[](const std::vector<Affine>& grids, std::size_t, std::size_t, float x) { return right(grids, 0, x); },
     "You take one grid for all channels. Element i belongs to channel i % channels."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x) {
       return right(grids, i / std::max<std::size_t>(1, n / grids.size()), x);
     },
     "You take channels for blocks of the array. They alternate: element i belongs to channel i % channels."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return quantize::dequantize(grid, std::floor(steps_of(grid, x) / grid.scale + 0.5F));
     },
     "You leave out quant_min. It is 0 on most grids, but 1 on a narrow one, whose lowest integer is not used."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return quantize::dequantize(grid, std::floor(cut(grid, x) / grid.scale + grid.zero_point + 0.5F));
     },
     kLab2},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       const float q = std::floor(x / grid.scale + grid.zero_point + 0.5F);
       return quantize::dequantize(grid, std::clamp(q, grid.quant_min, grid.quant_max));
     },
     kLab2},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return grid.nudged_min + std::floor(steps_of(grid, x) / grid.scale + 0.5F) * grid.scale;
     },
     "You go back from nudged_min, by steps of the scale. That has other last bits, and 0 is not exact: y = (q - zero_point) * scale."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return grid.quant_min + std::floor(steps_of(grid, x) / grid.scale + 0.5F);
     },
     "You return the integer q. What is asked for is the number that it stands for: (q - zero_point) * scale."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const Affine& grid = own(grids, i);
       return quantize::dequantize(grid, grid.quant_min + std::floor((x - grid.nudged_min) / grid.scale + 0.5F));
     },
     "You do not cut x. Beyond nudged_min ... nudged_max it becomes the end of the grid."},
    {[](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
       const float y = right(grids, i, x);
       return y == 0 ? -0.0F : y;
     },
     "Your zeros are -0. It compares as equal to 0, but the bits must be the same: (q - zero_point) * scale gives 0."}};

constexpr const char* kBefore =
    "You write before the beginning of y. A last vector that goes back to be whole needs as many numbers as it has places: n may be smaller.";
constexpr const char* kInPlace =
    "You change x before you read it. y may be x: read each number before anything is written to its place, and clear nothing first.";
constexpr const char* kBeyond =
    "You write behind the end of y. In a large network that is somebody else's memory. Look at the last vector, or at the last row: it may be shorter.";

Affine grid_of(float max, int bits) { return quantize::grid_of<float>({-1, max}, {.bits = bits}); }

/// The numbers in the middle of two neighbours on the grid, as near as float32 comes.
Values ties_of(const Affine& grid) {
  Values ties;
  const int steps = static_cast<int>(grid.quant_max - grid.quant_min);
  for (int step = 0; step < steps; ++step)
    ties.push_back(grid.nudged_min + (static_cast<float>(step) + 0.5F) * grid.scale);
  return ties;
}

/// A tensor and its grids, one for each channel.
struct Question {
  std::string words;
  Values x;
  std::vector<Affine> grids;
};

/// What a call wrote: y, and how many of the numbers around it, which nobody may write.
struct Answer {
  Values y;
  std::ptrdiff_t before = 0, behind = 0;
};

Answer answer_to(const Question& q, Kernel answer, bool in_place) {
  constexpr std::size_t kGuards = 64;
  std::vector<fake_quant_grid> given;
  for (const Affine& g : q.grids)
    given.push_back({g.scale, g.zero_point, g.quant_min, g.quant_max, g.nudged_min, g.nudged_max});
  // Whoever reads beyond the ends of x, too, finds zeros there.
  Values x(q.x.size() + 2 * kGuards), y(x.size(), kGuard);
  float* const begin = y.data() + kGuards;
  float* const end = std::copy(q.x.begin(), q.x.end(), begin);
  if (!in_place) {
    std::copy(q.x.begin(), q.x.end(), x.begin() + kGuards);
    std::fill(begin, end, 0.0F);
  }
  answer(in_place ? begin : x.data() + kGuards, begin, end - begin, given.data(),
         static_cast<std::int64_t>(given.size()));
  const auto is_written = [](float number) { return number != kGuard; };
  return {.y = {begin, end},
          .before = std::count_if(y.data(), begin, is_written),
          .behind = std::count_if(end, end + kGuards, is_written)};
}

lab::Case case_for(const Question& q, const Values& y) {
  lab::Case result = {.question = q.words, .right = {}, .got = {}, .mistaken = {}, .inputs = lab::numbers(q.x)};
  result.mistaken.resize(std::size(kMistakes));
  for (std::size_t i = 0; i < q.x.size(); ++i) {
    result.got.push_back(y[i]);
    result.right.push_back(right(q.grids, i, q.x[i]));
    for (std::size_t m = 0; m < std::size(kMistakes); ++m)
      result.mistaken[m].push_back(kMistakes[m].way(q.grids, i, q.x.size(), q.x[i]));
  }
  return result;
}

/// Whatever the numbers are, the hint is the same.
lab::Case in_place_case(const Question& q, const Values& y) {
  lab::Case result = case_for(q, y);
  result.question += ", y is x";
  result.mistaken = {result.got};
  return result;
}

/// How many numbers around y were written, if any. Whatever their number is, the hint is the same.
void put_guard_case(const Question& q, std::ptrdiff_t written, std::vector<lab::Case>& cases) {
  const auto count = static_cast<double>(written);
  if (written > 0) cases.push_back({.question = q.words, .right = {0}, .got = {count}, .mistaken = {{count}}});
}

struct Differences {
  int ties = 0, other = 0;
};

/// Counts all ties on a hundred grids, and how many a product with 1 / scale takes to another number than the division.
Differences product_differences(int bits) {
  Differences found;
  for (int i = 1; i <= 100; ++i) {
    const Affine grid = grid_of(1 + 0.01F * static_cast<float>(i), bits);
    for (const float x : ties_of(grid)) {
      ++found.ties;
      if (by_product({grid}, 0, 1, x) != quantize::fake_quantize(grid, x)) ++found.other;
    }
  }
  return found;
}

}  // namespace

void check(lab::Report& report, Kernel answer) {
  const Affine fine = grid_of(1.37F, 8);
  const float infinity = std::numeric_limits<float>::infinity();
  Values special = lab::bell(33, 201);
  special[3] = std::numeric_limits<float>::quiet_NaN();
  special[9] = infinity;
  special[10] = -infinity;
  // The largest number below a half; then numbers half of which are ties.
  Values exact = {std::nextafter(0.5F, 0.0F)};
  for (int i = -10; i < 40; ++i) exact.push_back(0.5F * static_cast<float>(i));
  const Affine narrow = quantize::grid_of<float>({-1, 1}, {.bits = 4, .narrow_range = true, .symmetric = true});
  const Question questions[] = {
      {"29 numbers, 4 bits", lab::bell(29, 202), {grid_of(2, 4)}},
      {"51 numbers, nearly half of them ties, 4 bits", exact, {quantize::grid_of<float>({0, 15}, {.bits = 4})}},
      {"255 ties, 8 bits", ties_of(fine), {fine}},
      {"33 numbers with a NaN and infinities", special, {fine}},
      {"50 numbers of 3 channels", lab::bell(50, 203), {fine, grid_of(3, 4), grid_of(0.1F, 2)}},
      {"30 numbers on a narrow grid, quant_min 1", lab::bell(30, 204), {narrow}},
      {"5 numbers, 4 bits", lab::bell(5, 205), {grid_of(2, 4)}},
      {"2 numbers of 3 channels", lab::bell(2, 206), {fine, grid_of(3, 4), grid_of(0.1F, 2)}},
      {"no numbers", {}, {fine}}};
  std::vector<lab::Case> cases, in_place, before, behind;
  for (const Question& question : questions) {
    const Answer apart = answer_to(question, answer, false);
    cases.push_back(case_for(question, apart.y));
    in_place.push_back(in_place_case(question, answer_to(question, answer, true).y));
    put_guard_case(question, apart.before, before);
    put_guard_case(question, apart.behind, behind);
  }
  report.judge("y", cases, lab::hints_of(kMistakes), 0);
  // Numbers that are wrong anyway are wrong in place, too.
  if (report.passed()) report.judge("y", in_place, {kInPlace}, 0);
  if (!before.empty()) report.judge("numbers written before the beginning of y", before, {kBefore}, 0);
  if (!behind.empty()) report.judge("numbers written behind the end of y", behind, {kBeyond}, 0);
}

void show(std::ostream& out) {
  out << "bits    ties    with 1 / scale at another number\n";
  for (const int bits : {2, 3, 4, 5, 6, 7, 8}) {
    const Differences found = product_differences(bits);
    out << lab::text(bits, "%4.0f") << lab::text(found.ties, "%8.0f") << lab::text(found.other, "%9.0f") << "\n";
  }
}

std::string figure() {
  lab::Points points;
  for (int bits = 2; bits <= 8; ++bits) {
    const Differences found = product_differences(bits);
    points.emplace_back(bits, 100.0 * found.other / found.ties);
  }
  lab::Chart chart("Ties that a product with 1 / scale takes elsewhere", {"bits", 1.4, 8.6, {2, 3, 4, 5, 6, 7, 8}},
                   {"% of ties on 100 grids", 0, 15, {0, 5, 10, 15}});
  chart.bars(points, 0.5, lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab10
