#include <algorithm>
#include <cmath>

#include "integer/arithmetic.h"
#include "labs/07-integers-alone/lab.h"
#include "labs/chart.h"

namespace lab07 {
namespace {

namespace integer = miniqat::integer;

using Integers = std::vector<std::uint8_t>;

/// What the right function and each mistake make of the parts of the layer.
struct Ways {
  /// What a bias is divided by; 0 leaves it out.
  float bias_scale = 0;
  int input_zero_point = 0;
  bool rounds = true;
  bool clamps = true;
};

integer::Multiplier exact_multiplier(const Dense& layer) {
  return integer::multiplier_for(layer.input.scale * layer.weight.scale / layer.output.scale);
}

std::int64_t sum_of(const Dense& layer, const Integers& x, int o, const Ways& ways) {
  std::int64_t sum = ways.bias_scale > 0 ? std::lround(layer.bias[static_cast<std::size_t>(o)] / ways.bias_scale) : 0;
  for (int i = 0; i < layer.inputs; ++i)
    sum += std::int64_t{x[static_cast<std::size_t>(i)] - ways.input_zero_point} *
           (layer.weights[i * layer.outputs + o] - layer.weight.zero_point);
  return sum;
}

lab::Numbers mistaken(const Dense& layer, const Integers& x, const Ways& ways) {
  const integer::Multiplier m = exact_multiplier(layer);
  lab::Numbers y;
  for (int o = 0; o < layer.outputs; ++o) {
    const std::int64_t product = sum_of(layer, x, o, ways) * m.mantissa;
    const std::int64_t shifted = ways.rounds ? integer::round_shift(product, m.shift) : product >> m.shift;
    const std::int64_t place = shifted + layer.output.zero_point;
    y.push_back(static_cast<double>(ways.clamps ? std::clamp<std::int64_t>(place, 0, 255) : place & 255));
  }
  return y;
}

Ways right_ways(const Dense& layer) {
  return {.bias_scale = layer.input.scale * layer.weight.scale, .input_zero_point = layer.input.zero_point};
}

Integers right_outputs(const Dense& layer, const Integers& x) {
  Integers y;
  for (int o = 0; o < layer.outputs; ++o)
    y.push_back(integer::requantize(static_cast<std::int32_t>(sum_of(layer, x, o, right_ways(layer))),
                                    exact_multiplier(layer), layer.output.zero_point, {0, 255}));
  return y;
}

lab::Numbers with(const Dense& layer, const Integers& x, void (*change)(const Dense&, Ways&)) {
  Ways ways = right_ways(layer);
  change(layer, ways);
  return mistaken(layer, x, ways);
}

/// `right` for one call of the function, or the same windows one after another.
lab::Case case_for(const std::string& question, const Dense& layer, const std::vector<Integers>& inputs,
                   lab::Numbers right, Integers (*answer)(const Dense&, const Integers&)) {
  using Change = void (*)(const Dense&, Ways&);
  const Change changes[] = {
      [](const Dense& l, Ways& w) { w.bias_scale = l.output.scale; },
      [](const Dense&, Ways& w) { w.input_zero_point = 0; }, [](const Dense&, Ways& w) { w.rounds = false; },
      [](const Dense&, Ways& w) { w.clamps = false; }, [](const Dense&, Ways& w) { w.bias_scale = 0; }};
  lab::Case result = {.question = question, .right = std::move(right), .got = {}, .mistaken = {}};
  result.mistaken.resize(std::size(changes));
  for (const Integers& x : inputs) {
    std::ranges::copy(answer(layer, x), std::back_inserter(result.got));
    for (std::size_t i = 0; i < std::size(changes); ++i)
      std::ranges::copy(with(layer, x, changes[i]), std::back_inserter(result.mistaken[i]));
  }
  return result;
}

std::uint8_t integer_of(const Grid& grid, float real) {
  return integer::quantize({.scale = grid.scale, .zero_point = grid.zero_point, .bits = 8}, real);
}

Dense layer_of(int inputs, int outputs, unsigned seed, float output_scale) {
  Dense layer = {.inputs = inputs,
                 .outputs = outputs,
                 .input = {0.02F, 100},
                 .weight = {0.01F, 128},
                 .output = {output_scale, 60},
                 .weights = {},
                 .bias = lab::bell(static_cast<std::size_t>(outputs), seed)};
  for (const float weight : lab::bell(layer.bias.size() * inputs, seed + 1))
    layer.weights.push_back(integer_of(layer.weight, 0.4F * weight));
  return layer;
}

Integers inputs_of(const Dense& layer, unsigned seed, std::size_t count) {
  Integers x;
  for (const float value : lab::bell(count, seed)) x.push_back(integer_of(layer.input, 0.8F * value));
  return x;
}

constexpr int kSide = 4;

/// The 3x3 windows of a picture with 4x4 pixels. Beyond its edges is the real 0: the zero point.
std::vector<Integers> windows_of(const Integers& picture, int zero_point) {
  std::vector<Integers> windows;
  for (int row = 0; row < kSide; ++row)
    for (int column = 0; column < kSide; ++column) {
      windows.emplace_back();
      for (int r = row - 1; r <= row + 1; ++r)
        for (int c = column - 1; c <= column + 1; ++c) {
          const bool inside = r >= 0 && r < kSide && c >= 0 && c < kSide;
          windows.back().push_back(inside ? picture[r * kSide + c] : static_cast<std::uint8_t>(zero_point));
        }
    }
  return windows;
}

/// The convolution by its definition: a sum over the taps that lie inside the picture.
lab::Numbers convolution(const Dense& filter, const Integers& picture) {
  lab::Numbers y;
  for (int place = 0; place < kSide * kSide; ++place) {
    std::int64_t sum = std::lround(filter.bias[0] / (filter.input.scale * filter.weight.scale));
    for (int tap = 0; tap < 9; ++tap) {
      const int r = place / kSide + tap / 3 - 1, c = place % kSide + tap % 3 - 1;
      if (r < 0 || r >= kSide || c < 0 || c >= kSide) continue;
      sum += std::int64_t{picture[r * kSide + c] - filter.input.zero_point} *
             (filter.weights[static_cast<std::size_t>(tap)] - filter.weight.zero_point);
    }
    y.push_back(integer::requantize(static_cast<std::int32_t>(sum), exact_multiplier(filter), filter.output.zero_point,
                                    {0, 255}));
  }
  return y;
}

/// The page's layer: two inputs, one output.
const Dense kExample = {.inputs = 2,
                        .outputs = 1,
                        .input = {0.02F, 100},
                        .weight = {0.01F, 128},
                        .output = {0.05F, 60},
                        .weights = {228, 78},
                        .bias = {0.3F}};

}  // namespace

Multiplier multiplier_for(double real) {
  const integer::Multiplier multiplier = integer::multiplier_for(real);
  return {multiplier.mantissa, multiplier.shift};
}

void check(lab::Report& report, Integers (*answer)(const Dense& layer, const Integers& x)) {
  std::vector<lab::Case> cases;
  const auto add = [&](const std::string& question, const Dense& layer, const Integers& x) {
    cases.push_back(case_for(question, layer, {x}, lab::numbers(right_outputs(layer, x)), answer));
  };
  add("the page's layer, x = (150, 130)", kExample, {150, 130});
  const Dense wide = layer_of(32, 6, 21, 0.05F);
  add("32 inputs, 6 outputs", wide, inputs_of(wide, 22, 32));
  const Dense narrow = layer_of(16, 8, 31, 0.004F);
  add("16 inputs, 8 outputs, a fine output grid", narrow, inputs_of(narrow, 32, 16));
  const Dense filter = layer_of(9, 1, 41, 0.03F);
  const Integers picture = inputs_of(filter, 42, kSide * kSide);
  cases.push_back(case_for("a 3x3 convolution over 4x4 pixels, window by window", filter,
                           windows_of(picture, filter.input.zero_point), convolution(filter, picture), answer));
  report.judge("y", cases,
               {"Your bias has the wrong scale. It is added to sums of products, whose scale is input scale * weight "
                "scale; the output's scale comes later, with the multiplier.",
                "You do not take the input's zero point off. x stands for scale * (x - zero_point), and so do weights.",
                "You shift without rounding: that always goes down. Add 2^(shift - 1) to the product first.",
                "You do not cut the result to 0 .. 255. A conversion to 8 bits wraps around: 256 becomes 0.",
                "You leave out the bias. Begin the sum with round(bias / (input scale * weight scale))."},
               0);
}

void show(std::ostream& out) {
  const Integers x = {150, 130};
  const std::int64_t bias = std::lround(kExample.bias[0] / (kExample.input.scale * kExample.weight.scale));
  const std::int64_t sum = sum_of(kExample, x, 0, right_ways(kExample));
  const integer::Multiplier m = exact_multiplier(kExample);
  out << "scales: x " << lab::text(kExample.input.scale) << ", w " << lab::text(kExample.weight.scale) << ", y "
      << lab::text(kExample.output.scale) << "\n";
  out << "x = (150, 130), real (" << lab::text(0.02 * 50, "%.1f") << ", " << lab::text(0.02 * 30, "%.1f")
      << "); w = (228, 78), real (" << lab::text(0.01 * 100, "%.1f") << ", " << lab::text(0.01 * -50, "%.1f")
      << ")\nin real numbers: y = 1.0 * 1.0 - 0.6 * 0.5 + 0.3 = " << lab::text(1.0 * 1.0 - 0.6 * 0.5 + 0.3, "%.1f")
      << "\nbias: 0.3 / 0.0002 = " << bias << "\nsum: 50 * 100 + 30 * -50 + " << bias << " = " << sum
      << "\nmultiplier: 0.0002 / 0.05 = " << lab::text(m.real(), "%.4f") << " = " << m.mantissa << " / 2^" << m.shift
      << "\nrequantized: " << integer::round_shift(sum * m.mantissa, m.shift)
      << ", with the zero point 60: " << int{right_outputs(kExample, x)[0]} << ", real "
      << lab::text(0.05 * (right_outputs(kExample, x)[0] - 60), "%.1f") << "\n";
}

std::string figure() {
  lab::Chart chart("One output against one input: real numbers and integers", {"x (real)", -2, 3, {-2, -1, 0, 1, 2, 3}},
                   {"y (real)", -3, 4, {-3, -2, -1, 0, 1, 2, 3, 4}});
  Dense coarse = kExample;
  coarse.output = {0.5F, 6};
  lab::Points real, integers;
  for (int q = 0; q <= 250; ++q) {
    const double x = 0.02 * (q - 100);
    const Integers inputs = {static_cast<std::uint8_t>(q), 130};
    real.emplace_back(x, x - 0.6 * 0.5 + 0.3);
    integers.emplace_back(x, 0.5 * (right_outputs(coarse, inputs)[0] - 6));
  }
  chart.line(real, lab::Colour::kGrey, true);
  chart.line(integers, lab::Colour::kBlue);
  chart.label(-1.8, 3.2, "dashed: float", lab::Colour::kGrey);
  chart.label(-1.8, 2.6, "integers, output scale 0.5", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab07
