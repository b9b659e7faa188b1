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

/// How a mistake moves x, element i of n, to its grid.
using Way = float (*)(const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x);

float steps_of(const Affine& grid, float x) {
  return std::clamp(x, grid.nudged_min, grid.nudged_max) - grid.nudged_min;
}

const Affine& own(const std::vector<Affine>& grids, std::size_t i) { return grids[i % grids.size()]; }

const Way kMistakes[] = {
    [](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
      const Affine& grid = own(grids, i);
      return quantize::dequantize(grid, grid.quant_min + std::floor(steps_of(grid, x) * (1 / grid.scale) + 0.5F));
    },
    [](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
      const Affine& grid = own(grids, i);
      return quantize::dequantize(grid, grid.quant_min + std::nearbyint(steps_of(grid, x) / grid.scale));
    },
    [](const std::vector<Affine>& grids, std::size_t i, std::size_t n, float x) {
      return i < n / 8 * 8 ? quantize::fake_quantize(own(grids, i), x) : 0.0F;
    },
    [](const std::vector<Affine>& grids, std::size_t i, std::size_t, float x) {
      return quantize::fake_quantize(own(grids, i), std::isnan(x) ? own(grids, i).nudged_min : x);
    },
    [](const std::vector<Affine>& grids, std::size_t, std::size_t, float x) {
      return quantize::fake_quantize(grids[0], x);
    }};

Affine grid_of(float max, int bits) { return quantize::grid_of<float>({-1, max}, {.bits = bits}); }

/// The numbers in the middle of two neighbours on the grid, as near as float32 comes.
Values ties_of(const Affine& grid) {
  Values ties;
  const int steps = static_cast<int>(grid.quant_max - grid.quant_min);
  for (int step = 0; step < steps; ++step)
    ties.push_back(grid.nudged_min + (static_cast<float>(step) + 0.5F) * grid.scale);
  return ties;
}

lab::Case case_for(const std::string& question, const Values& x, const std::vector<Affine>& grids, Kernel answer) {
  std::vector<fake_quant_grid> given;
  for (const Affine& g : grids)
    given.push_back({g.scale, g.zero_point, g.quant_min, g.quant_max, g.nudged_min, g.nudged_max});
  Values y(x.size());
  answer(x.data(), y.data(), static_cast<std::int64_t>(x.size()), given.data(),
         static_cast<std::int64_t>(given.size()));
  lab::Case result = {.question = question, .right = {}, .got = lab::numbers(y), .mistaken = {}};
  for (std::size_t i = 0; i < x.size(); ++i) result.right.push_back(quantize::fake_quantize(own(grids, i), x[i]));
  for (const Way way : kMistakes) {
    result.mistaken.emplace_back();
    for (std::size_t i = 0; i < x.size(); ++i) result.mistaken.back().push_back(way(grids, i, x.size(), x[i]));
  }
  return result;
}

struct Differences {
  int ties = 0, other = 0;
};

/// Of all ties on a hundred grids, how many a product with 1 / scale takes to another number than the division.
Differences product_differences(int bits) {
  Differences found;
  for (int i = 1; i <= 100; ++i) {
    const Affine grid = grid_of(1 + 0.01F * static_cast<float>(i), bits);
    for (const float x : ties_of(grid)) {
      ++found.ties;
      if (kMistakes[0]({grid}, 0, 1, x) != quantize::fake_quantize(grid, x)) ++found.other;
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
  Values exact;
  for (int i = -10; i < 40; ++i) exact.push_back(0.5F * static_cast<float>(i));
  report.judge(
      "y",
      {case_for("29 numbers, 4 bits", lab::bell(29, 202), {grid_of(2, 4)}, answer),
       case_for("50 numbers, halves of them ties, 4 bits", exact, {quantize::grid_of<float>({0, 15}, {.bits = 4})},
                answer),
       case_for("255 ties, 8 bits", ties_of(fine), {fine}, answer),
       case_for("33 numbers with a NaN and infinities", special, {fine}, answer),
       case_for("50 numbers of 3 channels", lab::bell(50, 203), {fine, grid_of(3, 4), grid_of(0.1F, 2)}, answer),
       case_for("no numbers", {}, {fine}, answer)},
      {"You multiply by 1 / scale. That rounds twice, and some ties go the other way: divide.",
       "Your ties go to even, as std::nearbyint and the processor's rounding have it. Here they go upwards: "
       "std::floor(v + 0.5F).",
       "You leave out the tail. n need not be a multiple of 8: the last numbers need a loop of their own.",
       "You lose NaNs. std::max(a, x) gives a if x is a NaN; x < a ? a : x keeps it. A NaN in training must "
       "not become an innocent number.",
       "You take one grid for all channels. Element i belongs to channel i % channels."},
      0);
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
