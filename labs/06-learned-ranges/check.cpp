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

/// One number x with y, its place on the grid, and the gradient d_y.
struct Element {
  double x = 0, y = 0, d_y = 0, scale = 0, min = 0, max = 0;

  double share() const { return (y - x) / (max - min); }
};

/// What a number adds to the two gradients.
Ends below(const Element& e) { return {e.d_y, 0}; }
Ends above(const Element& e) { return {0, e.d_y}; }
Ends inside(const Element& e) { return {-e.d_y * e.share(), e.d_y * e.share()}; }
Ends none(const Element&) { return {}; }

Ends one_below(const Element&) { return {1, 0}; }
Ends one_above(const Element&) { return {0, 1}; }
/// The derivatives of y, without the d_y by which the chain rule multiplies them.
Ends share_alone(const Element& e) { return {-e.share(), e.share()}; }

/// How an answer treats numbers below the grid, inside of it, and above it.
struct Rule {
  Ends (*below)(const Element&) = lab06::below;
  Ends (*inside)(const Element&) = lab06::inside;
  Ends (*above)(const Element&) = lab06::above;
};

Ends by_rule(const Element& e, const Rule& rule) {
  return e.x < e.min ? rule.below(e) : e.x > e.max ? rule.above(e) : rule.inside(e);
}

/// A typical mistake: the rule that its author follows.
struct Mistake {
  Rule rule;
  const char* hint;
};

Ends scaled(const Ends& ends, double factor) { return {ends.d_min * factor, ends.d_max * factor}; }
Ends sum(const Ends& a, const Ends& b) { return {a.d_min + b.d_min, a.d_max + b.d_max}; }

/// Inside of the grid; an end counts as beyond it.
Ends closed(const Element& e, double place) {
  return place <= e.min ? below(e) : place >= e.max ? above(e) : inside(e);
}

constexpr const char* kOneBeyond =
    "Beyond the range you add 1. That is dy/dmin or dy/dmax; the chain rule multiplies it by d_y.";

const Mistake kMistakes[] = {
    {{.inside = none},
     "You have only the numbers beyond the range. Those inside count, too: with the range the step grows, and with it their rounding error. Add d_y * (y - x) / (max - min) to d_max, and take it off d_min."},
    {{.below = none, .above = none},
     "You have only the numbers inside of the range. Beyond it y is an end of the grid: below, d_y counts fully for d_min, above for d_max."},
    {{.inside = [](const Element& e) { return scaled(inside(e), -1); }},
     "Your rounding term has the wrong sign. Inside, y - x grows with max: d_y * (y - x) / (max - min) is added to d_max and taken off d_min."},
    {{.inside =
          [](const Element& e) {
            return Ends{inside(e).d_max, inside(e).d_max};
          }},
     "You add the rounding term to both ends. A larger max makes the step wider, a larger min makes it narrower: it is added to d_max and taken off d_min."},
    {{.inside =
          [](const Element& e) {
            return Ends{0, inside(e).d_max};
          }},
     "You give the rounding term to max alone. The step depends on min, too: take it off d_min."},
    {{.below = [](const Element& e) { return sum(below(e), inside(e)); },
      .above = [](const Element& e) { return sum(above(e), inside(e)); }},
     "Numbers beyond the range have no rounding error: y is an end of the grid and follows it. Give them d_y alone, and the rounding term to the numbers inside."},
    {{.below = above, .above = below},
     "You mix up the ends. What lies below was cut to min, so it counts for d_min; what lies above counts for d_max."},
    {{.inside = [](const Element& e) { return scaled(inside(e), e.max - e.min); }},
     "You do not divide by the width. y = x + s * r with s = (max - min) / steps, so dy/dmax is r / steps, which is (y - x) / (max - min)."},
    {{.inside = [](const Element& e) { return scaled(inside(e), (e.max - e.min) / e.scale); }},
     "You divide by the scale. (y - x) / s is the derivative with respect to the scale; that with respect to max is smaller by the number of steps: (y - x) / (max - min)."},
    {{.below = one_below, .above = one_above}, kOneBeyond},
    {{.below = one_below}, kOneBeyond},
    {{.above = one_above}, kOneBeyond},
    {{.below = one_below, .inside = share_alone, .above = one_above},
     "You leave out d_y. The chain rule multiplies each derivative of y by it."},
    {{.inside = share_alone},
     "Inside of the range you leave out d_y. (y - x) / (max - min) is dy/dmax; the chain rule multiplies it by d_y, as you do beyond the range."},
    {{.inside = [](const Element& e) { return closed(e, e.x); }},
     "You count numbers that lie exactly on an end of the grid as cut. They were not (lab 4): y = x there. Behind a Relu half of all numbers are 0, which is min: compare with < and >."},
    {{.inside = [](const Element& e) { return e.x <= e.min ? below(e) : inside(e); }},
     "You count numbers that are exactly min as cut. They were not (lab 4): y = x there. Behind a Relu half of all numbers are 0, which is min: compare with <."},
    {{.inside = [](const Element& e) { return e.x >= e.max ? above(e) : inside(e); }},
     "You count numbers that are exactly max as cut. They were not (lab 4): y = x there. Compare with >."},
    {{.inside = [](const Element& e) { return closed(e, e.y); }},
     "You look at y instead of x. A number in the outermost half step rounds to an end, but lies inside: compare x with min and max."}};

constexpr const char* kMean = "You take the mean. An end moves all numbers of the tensor, so its gradient is the sum.";
constexpr const char* kLast = "You keep the last number alone. Sum over all of them: +=.";

Ends mistaken_sum(const std::vector<Element>& elements, const Rule& rule) {
  Ends ends;
  for (const Element& e : elements) ends = sum(ends, by_rule(e, rule));
  return ends;
}

/// Each end as the last number that counted for it has left it.
Ends mistaken_last(const std::vector<Element>& elements) {
  Ends ends;
  for (const Element& e : elements) {
    const bool is_below = e.x<e.min, is_above = e.x> e.max;
    const Ends one = by_rule(e, {});
    if (!is_above) ends.d_min = one.d_min;
    if (!is_below) ends.d_max = one.d_max;
  }
  return ends;
}

lab::Numbers numbers_of(const Ends& ends) { return {ends.d_min, ends.d_max}; }

using Answer = Ends (*)(const Grid&, const Values&, const Values&);

lab::Case case_for(const std::string& numbers, const Grid& grid, int bits, const Values& x, const Values& d_y,
                   Answer answer) {
  std::vector<Element> elements;
  for (std::size_t i = 0; i < x.size(); ++i)
    elements.push_back({x[i], fake_quantize(grid, x[i]), d_y[i], grid.scale, grid.min, grid.max});
  lab::Case result = {.question = numbers + ", grid from " + lab::text(grid.min) + " to " + lab::text(grid.max) +
                                  " at " + lab::text(bits) + " bits",
                      .right = numbers_of(right_gradient(grid, bits, x, d_y)),
                      .got = numbers_of(answer(grid, x, d_y)),
                      .mistaken = {}};
  for (const Mistake& mistake : kMistakes) result.mistaken.push_back(numbers_of(mistaken_sum(elements, mistake.rule)));
  const double share = 1 / static_cast<double>(x.size());
  result.mistaken.push_back(numbers_of(scaled(mistaken_sum(elements, {}), share)));
  result.mistaken.push_back(numbers_of(mistaken_last(elements)));
  return result;
}

/// The page's example. With d_y = 1 a forgotten d_y changes nothing; with others it does.
const Values kPageX = {-1.4F, -0.7F, 0.2F, 1.4F, 2.5F}, kPageOnes(kPageX.size(), 1), kPageD = {2, -1, 3, 0.5F, -4};

lab::Case page_case(const Values& d_y, const std::string& d_y_text, Answer answer) {
  return case_for("the page's five numbers, " + d_y_text, grid_for(-1, 2, 2), 2, kPageX, d_y, answer);
}

/// 40 numbers like those of a tensor.
lab::Case bell_case(float min, float max, int bits, unsigned seed, Answer answer) {
  return case_for("40 numbers", grid_for(min, max, bits), bits, lab::bell(40, seed), lab::bell(40, seed + 100), answer);
}

/// Numbers on the ends of the grid and next to them.
lab::Case ends_case(Answer answer) {
  const Grid grid = grid_for(0, 3, 2);
  const Values x = {0, 0, 3, 1.25F, 3.5F, -0.5F, 2.75F}, d_y = {1, 2, 4, 8, 16, 32, 64};
  return case_for("x = " + lab::text(lab::numbers(x)) + ", d_y = " + lab::text(lab::numbers(d_y)), grid, 2, x, d_y,
                  answer);
}

/// The gradient with respect to max of the mean of (y - x)^2 over |x|, in its two parts, at 2 bits.
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

void show_example(std::ostream& out, const Values& d_y) {
  const Grid grid = grid_for(-1, 2, 2);
  out << "     x     y   d_y    in d_min    in d_max\n";
  for (std::size_t i = 0; i < kPageX.size(); ++i) {
    const Ends one = right_gradient(grid, 2, {kPageX[i]}, {d_y[i]});
    out << lab::text(kPageX[i], "%6.1f") << lab::text(fake_quantize(grid, kPageX[i]), "%6.1f")
        << lab::text(d_y[i], "%6.1f") << lab::text(one.d_min, "%12.3f") << lab::text(one.d_max, "%12.3f") << "\n";
  }
  const Ends sum = right_gradient(grid, 2, kPageX, d_y);
  out << " sum            " << lab::text(sum.d_min, "%14.3f") << lab::text(sum.d_max, "%12.3f") << "\n";
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

void check(lab::Report& report, decltype(&range_gradient) answer) {
  std::vector<std::string> hints = lab::hints_of(kMistakes);
  hints.insert(hints.end(), {kMean, kLast});
  report.judge("d_min and d_max",
               {page_case(kPageOnes, "each with d_y = 1", answer),
                page_case(kPageD, "with d_y = " + lab::text(lab::numbers(kPageD)), answer), ends_case(answer),
                bell_case(-1, 1.5F, 2, 11, answer), bell_case(-0.5F, 1, 4, 12, answer), bell_case(-3, 3, 3, 13, answer),
                bell_case(0, 1, 8, 14, answer)},
               hints);
}

void show(std::ostream& out) {
  out << "range [-1, 2] at 2 bits\n";
  show_example(out, kPageOnes);
  show_example(out, kPageD);
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
