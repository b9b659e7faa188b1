#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/tensors/standard.h"
#include "integer/arithmetic.h"
#include "labs/11-numbers-as-answers/lab.h"
#include "labs/chart.h"

namespace lab11 {
namespace {

namespace integer = miniqat::integer;

/// All that the function is given.
struct Question {
  std::int32_t accumulator = 0;
  double scale = 1;
  Grid grid;
  Units units;

  double real() const { return accumulator * scale; }
  /// Before the grid ends.
  double rounded() const { return std::round(real() / grid.scale) + grid.zero_point; }
  double top() const { return std::ldexp(1.0, grid.bits) - 1; }
  double number(double q) const { return grid.scale * (q - grid.zero_point); }
  double in_units(double number) const { return number * units.deviation + units.mean; }
};

/// miniqat's own: the integer of the engine's grid, and the number that an export's mean and deviation make of it.
double right_answer(const Question& q) {
  const integer::Grid grid = {
      .scale = static_cast<float>(q.grid.scale), .zero_point = q.grid.zero_point, .bits = q.grid.bits};
  const miniqat::Standard standard = {{static_cast<float>(q.units.mean)}, {static_cast<float>(q.units.deviation)}};
  const std::uint8_t integers = integer::quantize(grid, static_cast<float>(q.real()));
  return standard.restored(0, integer::dequantize(grid, integers));
}

struct Mistake {
  double (*answer)(const Question& q);
  const char* hint;
};

double cut(const Question& q, double integer) { return std::clamp(integer, 0.0, q.top()); }

const Mistake kMistakes[] = {
    {[](const Question& q) {
       return q.in_units(q.number(cut(q, std::trunc(q.real() / q.grid.scale) + q.grid.zero_point)));
     },
     "Your integer is cut off, not rounded: a conversion to an integer drops the fraction. Use std::lround."},
    {[](const Question& q) {
       return q.in_units(q.number(cut(q, std::floor(q.real() / q.grid.scale) + q.grid.zero_point)));
     },
     "Your integer is rounded down. The nearest one is asked for: std::lround."},
    {[](const Question& q) { return (q.number(cut(q, q.rounded())) + q.units.mean) * q.units.deviation; },
     "You add the mean before you multiply. Standardising subtracts the mean first and divides last; the way back is number * deviation + mean."},
    {[](const Question& q) { return q.in_units(q.real()); },
     "Your answer is on no grid: the output of an integer network is an integer. Round accumulator * scale to the grid first; that is where the answer loses."},
    {[](const Question& q) { return q.in_units(q.number(q.rounded())); },
     "Your integer goes beyond the grid. With b bits there are the integers from 0 to 2^b - 1: use std::clamp after the zero point is added."},
    {[](const Question& q) { return q.number(cut(q, q.rounded())); },
     "You return standardised numbers. A user has asked for the units of the data: number * deviation + mean."},
    {[](const Question& q) { return q.in_units(q.grid.scale * cut(q, q.rounded())); },
     "You forget the zero point on the way back. The integer q stands for scale * (q - zero_point)."},
    {[](const Question& q) { return q.in_units(q.number(cut(q, std::round(q.real() / q.grid.scale)))); },
     "You forget the zero point on the way to the integer: q = round(number / scale) + zero_point."},
    {[](const Question& q) { return q.in_units(q.number(std::clamp(q.rounded(), 0.0, q.top() + 1))); },
     "Your grid has one integer more than it should have: b bits end at 2^b - 1."},
    {[](const Question& q) { return (q.number(cut(q, q.rounded())) - q.units.mean) / q.units.deviation; },
     "You standardise once more. The network's numbers are standardised; the way back is number * deviation + mean."},
    {[](const Question& q) { return cut(q, q.rounded()); },
     "You return the integer. It stands for scale * (integer - zero_point), in standardised units."}};

/// The page's example.
const Question kPage = {417, 0.002, {4, 0.3, 7}, {20, 8}};

lab::Case case_for(const Question& q, decltype(&answer) of_reader) {
  lab::Case result = {.question = lab::text(q.real()) + " on a grid of " + lab::text(q.grid.bits) + " bits, scale " +
                                  lab::text(q.grid.scale) + ", zero point " + lab::text(q.grid.zero_point) + "; mean " +
                                  lab::text(q.units.mean) + ", deviation " + lab::text(q.units.deviation),
                      .right = {right_answer(q)},
                      .got = {of_reader(q.accumulator, q.scale, q.grid, q.units)},
                      .mistaken = {}};
  for (const Mistake& mistake : kMistakes) result.mistaken.push_back({mistake.answer(q)});
  return result;
}

constexpr std::size_t kExamples = 2000, kInputs = 8, kClasses = 4;

/// Two last layers behind the same inputs: four logits, and a number in degrees.
struct Outputs {
  std::vector<std::vector<double>> logits;
  std::vector<int> labels;
  std::vector<double> degrees;
};

/// Examples of a class lie around its centre. The logits of the nearest centre are highest; the number depends on the
/// same inputs.
Outputs outputs() {
  const std::vector<float> centres = lab::bell(kClasses * kInputs, 7), noise = lab::bell(kExamples * kInputs, 8),
                           slopes = lab::bell(kInputs, 9);
  Outputs all;
  for (std::size_t n = 0; n < kExamples; ++n) {
    const std::size_t label = n % kClasses;
    std::vector<double> x;
    for (std::size_t i = 0; i < kInputs; ++i)
      x.push_back(1.3 * centres[label * kInputs + i] + 0.7 * noise[n * kInputs + i]);
    std::vector<double> logits;
    for (std::size_t k = 0; k < kClasses; ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < kInputs; ++i) {
        const double centre = 1.3 * centres[k * kInputs + i];
        sum += (x[i] - centre / 2) * centre;
      }
      logits.push_back(sum);
    }
    double number = 0;
    for (std::size_t i = 0; i < kInputs; ++i) number += slopes[i] * x[i];
    all.logits.push_back(logits);
    all.labels.push_back(static_cast<int>(label));
    all.degrees.push_back(20 + 3 * number);
  }
  return all;
}

/// A number on the grid of a range that has `bits`.
double on_grid(double value, double low, double high, int bits) {
  const double step = (high - low) / (std::ldexp(1.0, bits) - 1);
  return low + step * std::round((value - low) / step);
}

struct Lost {
  double right = 0, r_squared = 0, largest = 0, step = 0;
};

/// What is left with outputs of so many bits; 0: as they are.
Lost left_with(const Outputs& all, int bits) {
  double low = 0, high = 0, right = 0, squares = 0, variation = 0, mean = 0;
  for (const std::vector<double>& logits : all.logits) {
    low = std::min(low, *std::ranges::min_element(logits));
    high = std::max(high, *std::ranges::max_element(logits));
  }
  for (std::size_t n = 0; n < kExamples; ++n) {
    std::vector<double> logits = all.logits[n];
    for (double& logit : logits)
      if (bits > 0) logit = on_grid(logit, low, high, bits);
    right += std::ranges::max_element(logits) - logits.begin() == all.labels[n] ? 1 : 0;
    mean += all.degrees[n] / kExamples;
  }
  const auto [coldest, warmest] = std::ranges::minmax(all.degrees);
  Lost lost{.right = right / kExamples};
  for (const double degrees : all.degrees) {
    const double given = bits == 0 ? degrees : on_grid(degrees, coldest, warmest, bits);
    squares += (given - degrees) * (given - degrees);
    variation += (degrees - mean) * (degrees - mean);
    lost.largest = std::max(lost.largest, std::abs(given - degrees));
  }
  lost.r_squared = 1 - squares / variation;
  lost.step = bits == 0 ? 0 : (warmest - coldest) / (std::ldexp(1.0, bits) - 1);
  return lost;
}

}  // namespace

void check(lab::Report& report, decltype(&answer) of_reader) {
  report.judge("the answer",
               {case_for(kPage, of_reader), case_for({-1234, 0.001, {8, 0.02, 130}, {-5, 2.5}}, of_reader),
                case_for({900, 0.01, {4, 0.3, 7}, {20, 8}}, of_reader),
                case_for({-9000, 0.001, {6, 0.125, 30}, {100, 0.5}}, of_reader),
                case_for({77, 0.031, {3, 0.7, 2}, {0.25, 40}}, of_reader)},
               lab::hints_of(kMistakes), 1e-5);
}

void show(std::ostream& out) {
  const double number = kPage.number(kPage.rounded());
  out << "accumulator 417 * 0.002 = " << lab::text(kPage.real(), "%.3f") << "; nearest integer "
      << lab::text(kPage.rounded(), "%.0f") << ", which stands for 0.3 * (10 - 7) = " << lab::text(number, "%.1f")
      << "\nin degrees: " << lab::text(number, "%.1f") << " * 8 + 20 = " << lab::text(kPage.in_units(number), "%.1f")
      << "; without the grid " << lab::text(kPage.in_units(kPage.real()), "%.2f") << "\n";
  out << "a step of the grid is 0.3 * 8 = " << lab::text(kPage.grid.scale * kPage.units.deviation, "%.1f")
      << " degrees\n";
  const Outputs all = outputs();
  out << "bits of the output    right class        R^2    largest error    a step\n";
  out << "float" << lab::text(100 * left_with(all, 0).right, "%27.1f%%") << lab::text(1, "%11.4f") << "\n";
  for (const int bits : {8, 6, 4, 3, 2}) {
    const Lost lost = left_with(all, bits);
    out << lab::text(bits, "%5.0f") << lab::text(100 * lost.right, "%27.1f%%") << lab::text(lost.r_squared, "%11.4f")
        << lab::text(lost.largest, "%17.2f") << lab::text(lost.step, "%10.2f") << "\n";
  }
}

std::string figure() {
  lab::Chart chart("What an output of 3 bits can say", {"the number, in degrees", 0, 40, {0, 10, 20, 30, 40}},
                   {"the answer", 0, 40, {0, 10, 20, 30, 40}});
  lab::Points exact, coarse, fine;
  for (double degrees = 0; degrees <= 40; degrees += 0.05) {
    exact.emplace_back(degrees, degrees);
    coarse.emplace_back(degrees, on_grid(std::clamp(degrees, 6.0, 34.0), 6, 34, 3));
  }
  chart.line(exact, lab::Colour::kGrey, true);
  chart.line(coarse, lab::Colour::kOrange);
  chart.label(21, 8, "a grid of 3 bits from 6 to 34 degrees", lab::Colour::kOrange);
  chart.label(3, 36, "the number itself", lab::Colour::kGrey);
  return chart.svg();
}

}  // namespace lab11
