#include <algorithm>
#include <cmath>

#include "integer/arithmetic.h"
#include "labs/07-integers-alone/lab.h"
#include "labs/chart.h"

namespace lab07 {
namespace {

namespace integer = miniqat::integer;

using Integers = std::vector<std::uint8_t>;

/// What an output is made of, step by step: the right steps, or one that is mistaken.
struct Ways {
  /// The integer of the bias, at the start of the sum.
  std::int64_t (*bias)(const Dense& layer, float bias) = [](const Dense& layer, float bias) -> std::int64_t {
    return std::lround(bias / (layer.input.scale * layer.weight.scale));
  };
  bool has_input_zero_point = true;
  bool has_weight_zero_point = true;
  bool weights_by_output = false;
  /// What the sum becomes in a variable that is too narrow.
  std::int64_t (*kept)(std::int64_t sum) = [](std::int64_t sum) { return sum; };
  double (*real)(const Dense& layer) = [](const Dense& layer) -> double {
    return layer.input.scale * layer.weight.scale / layer.output.scale;
  };
  std::int64_t (*shifted)(std::int64_t sum, const integer::Multiplier& m) =
      [](std::int64_t sum, const integer::Multiplier& m) { return integer::round_shift(sum * m.mantissa, m.shift); };
  /// From the shifted product to the output.
  std::int64_t (*placed)(const Dense& layer, std::int64_t shifted, float bias) = [](const Dense& layer,
                                                                                    std::int64_t shifted, float) {
    return std::clamp<std::int64_t>(shifted + layer.output.zero_point, 0, 255);
  };
};

integer::Multiplier exact_multiplier(const Dense& layer) { return integer::multiplier_for(Ways{}.real(layer)); }

std::int64_t sum_of(const Dense& layer, const Integers& x, int o, const Ways& ways) {
  std::int64_t sum = ways.bias(layer, layer.bias[static_cast<std::size_t>(o)]);
  for (int i = 0; i < layer.inputs; ++i) {
    const int place = ways.weights_by_output ? o * layer.inputs + i : i * layer.outputs + o;
    sum +=
        std::int64_t{x[static_cast<std::size_t>(i)] - (ways.has_input_zero_point ? layer.input.zero_point : 0)} *
        (layer.weights[static_cast<std::size_t>(place)] - (ways.has_weight_zero_point ? layer.weight.zero_point : 0));
  }
  return sum;
}

lab::Numbers outputs_by(const Dense& layer, const Integers& x, const Ways& ways) {
  const integer::Multiplier m = integer::multiplier_for(ways.real(layer));
  lab::Numbers y;
  for (int o = 0; o < layer.outputs; ++o) {
    const std::int64_t shifted = ways.shifted(ways.kept(sum_of(layer, x, o, ways)), m);
    // A conversion to std::uint8_t keeps the last eight bits.
    y.push_back(static_cast<double>(ways.placed(layer, shifted, layer.bias[static_cast<std::size_t>(o)]) & 255));
  }
  return y;
}

struct Mistake {
  Ways ways;
  const char* hint;
};

constexpr const char* kNoBias =
    "You leave out the bias, or add it as a real number, which is next to nothing beside the sum. Begin the sum with round(bias / (input scale * weight scale)).";
constexpr const char* kBiasScale =
    "Your bias has the wrong scale. It is added to sums of products, whose scale is input scale * weight scale; the output's scale comes later, with the multiplier.";
constexpr const char* kBiasCut =
    "You cut the fraction of the bias off, as a conversion to int does. Round it: std::lround(bias / (input scale * weight scale)).";

constexpr const char* kNarrowProduct =
    "Your product of sum and mantissa has 32 bits and overflows. Make one of them 64 bits wide before you multiply: std::int64_t{sum} * mantissa.";

/// What a variable of 32 bits keeps.
std::int64_t low_half(std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint64_t>(value)); }

const Mistake kMistakes[] = {
    {{.bias = [](const Dense& l, float bias) -> std::int64_t { return std::lround(bias / l.output.scale); }},
     kBiasScale},
    {{.bias = [](const Dense& l, float bias) -> std::int64_t { return std::lround(bias / l.weight.scale); }},
     kBiasScale},
    {{.bias = [](const Dense& l, float bias) -> std::int64_t { return std::lround(bias / l.input.scale); }},
     kBiasScale},
    {{.bias = [](const Dense&, float) -> std::int64_t { return 0; }}, kNoBias},
    {{.bias = [](const Dense& l,
                 float bias) { return static_cast<std::int64_t>(bias / (l.input.scale * l.weight.scale)); }},
     kBiasCut},
    {{.bias =
          [](const Dense& l, float bias) {
            return static_cast<std::int64_t>(std::floor(bias / (l.input.scale * l.weight.scale)));
          }},
     kBiasCut},
    {{.bias = [](const Dense&, float) -> std::int64_t { return 0; },
      .placed =
          [](const Dense& l, std::int64_t shifted, float bias) {
            return std::clamp<std::int64_t>(shifted + std::lround(bias / l.output.scale) + l.output.zero_point, 0, 255);
          }},
     "You add the bias behind the shift, on the output's coarse grid. It is rounded there a second time: it belongs to the sum."},
    {{.has_input_zero_point = false},
     "You do not take the input's zero point off. x stands for scale * (x - zero_point), and so do weights."},
    {{.has_weight_zero_point = false},
     "You do not take the weights' zero point off. A weight stands for scale * (q - zero_point), and so does x."},
    {{.has_input_zero_point = false, .has_weight_zero_point = false},
     "You multiply the integers as they are. They stand for real numbers only with their zero points taken off: (q_w - z_w)(q_x - z_x)."},
    {{.weights_by_output = true},
     "You read the weights in another order. The output is the last axis: weights[i * outputs + o] is of input i and output o."},
    {{.kept = [](std::int64_t sum) -> std::int64_t { return static_cast<std::int16_t>(sum); }},
     "Your sum has 16 bits, too few for many products. It overflows: take std::int32_t."},
    {{.real = [](const Dense& l) -> double { return l.input.scale * l.weight.scale; }},
     "Your multiplier leaves out the output's scale. M = input scale * weight scale / output scale."},
    {{.real = [](const Dense& l) -> double { return l.input.scale * l.weight.scale * l.output.scale; }},
     "Your multiplier multiplies by the output's scale. M = input scale * weight scale / output scale."},
    {{.shifted = [](std::int64_t sum, const integer::Multiplier& m) { return sum * m.mantissa >> m.shift; }},
     "You shift without rounding: that always goes down. Add 2^(shift - 1) to the product first, as std::int64_t{1} << (shift - 1): 1 << 37 does not fit into an int."},
    {{.shifted =
          [](std::int64_t sum, const integer::Multiplier& m) {
            return (sum * m.mantissa + (std::int64_t{1} << m.shift)) >> m.shift;
          }},
     "You add 2^shift before the shift, which is a whole, not a half. The half is 2^(shift - 1)."},
    {{.shifted =
          [](std::int64_t sum, const integer::Multiplier& m) {
            const std::int64_t half = std::int64_t{1} << (m.shift - 1);
            return (sum * m.mantissa + half) / (2 * half);
          }},
     "You divide by 2^shift. A division of integers cuts towards 0, so negative sums are rounded the wrong way: >> goes down."},
    {{.shifted =
          [](std::int64_t sum, const integer::Multiplier& m) {
            return integer::round_shift(low_half(sum * m.mantissa), m.shift);
          }},
     kNarrowProduct},
    {{.shifted =
          [](std::int64_t sum, const integer::Multiplier& m) {
            // Processors shift 32 bits by the last five bits of the count.
            const int shift = m.shift & 31;
            return low_half(low_half(sum * m.mantissa) + (std::int64_t{1} << ((shift - 1) & 31))) >> shift;
          }},
     kNarrowProduct},
    {{.placed = [](const Dense& l, std::int64_t shifted, float) { return shifted + l.output.zero_point; }},
     "You do not cut the result to 0 .. 255. A conversion to 8 bits wraps around: 256 becomes 0."},
    {{.placed = [](const Dense&, std::int64_t shifted, float) { return std::clamp<std::int64_t>(shifted, 0, 255); }},
     "You leave out the output's zero point. The real 0 is the integer zero_point: add it behind the shift."},
    {{.placed = [](const Dense& l, std::int64_t shifted,
                   float) { return std::clamp<std::int64_t>(shifted, 0, 255) + l.output.zero_point; }},
     "You cut before you add the output's zero point. Negative outputs are lost, and large ones go beyond 255: first add, then cut."},
    {{.placed =
          [](const Dense& l, std::int64_t shifted, float) {
            return std::clamp<std::int64_t>(shifted + l.output.zero_point, l.output.zero_point, 255);
          }},
     "You cut at the zero point. That is a Relu, which this layer does not have: cut to 0 .. 255."}};

Integers right_outputs(const Dense& layer, const Integers& x) {
  Integers y;
  for (int o = 0; o < layer.outputs; ++o)
    y.push_back(integer::requantize(static_cast<std::int32_t>(sum_of(layer, x, o, {})), exact_multiplier(layer),
                                    layer.output.zero_point, {0, 255}));
  return y;
}

/// `right` for one call of the function, or the same windows one after another.
lab::Case case_for(const std::string& question, const Dense& layer, const std::vector<Integers>& inputs,
                   lab::Numbers right, decltype(&integer_dense) answer) {
  lab::Case result = {.question = question, .right = std::move(right), .got = {}, .mistaken = {}};
  result.mistaken.resize(std::size(kMistakes));
  for (const Integers& x : inputs) {
    std::ranges::copy(answer(layer, x), std::back_inserter(result.got));
    for (std::size_t i = 0; i < std::size(kMistakes); ++i)
      std::ranges::copy(outputs_by(layer, x, kMistakes[i].ways), std::back_inserter(result.mistaken[i]));
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

/// One unit of the sum is one of the output: a bias that is not rounded shows.
const Dense kFine = {.inputs = 1,
                     .outputs = 4,
                     .input = {0.02F, 100},
                     .weight = {0.01F, 128},
                     .output = {0.0002F, 60},
                     .weights = {130, 120, 131, 125},
                     .bias = {0.00777F, -0.00777F, 0.00513F, -0.00507F}};

/// Sums of more than 16 bits.
Dense long_layer() {
  Dense layer = layer_of(2000, 2, 51, 100);
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = i % 2 == 0 ? 228 : 28;
  return layer;
}

}  // namespace

Multiplier multiplier_for(double real) {
  const integer::Multiplier multiplier = integer::multiplier_for(real);
  return {multiplier.mantissa, multiplier.shift};
}

void check(lab::Report& report, decltype(&integer_dense) answer) {
  std::vector<lab::Case> cases;
  const auto add = [&](const std::string& question, const Dense& layer, const Integers& x) {
    cases.push_back(case_for(question, layer, {x}, lab::numbers(right_outputs(layer, x)), answer));
  };
  add("the page's layer, x = (150, 130)", kExample, {150, 130});
  add("1 input, x = (101), 4 outputs on a grid as fine as the sum's, w = (130, 120, 131, 125), bias = (0.00777, -0.00777, 0.00513, -0.00507)",
      kFine, {101});
  const Dense wide = layer_of(32, 6, 21, 0.05F);
  add("32 inputs, 6 outputs", wide, inputs_of(wide, 22, 32));
  const Dense narrow = layer_of(16, 8, 31, 0.004F);
  add("16 inputs, 8 outputs, a fine output grid", narrow, inputs_of(narrow, 32, 16));
  const Dense lengthy = long_layer();
  add("2000 inputs, all 255, 2 outputs", lengthy, Integers(2000, 255));
  const Dense filter = layer_of(9, 1, 41, 0.03F);
  const Integers picture = inputs_of(filter, 42, kSide * kSide);
  cases.push_back(case_for("a 3x3 convolution over 4x4 pixels, window by window", filter,
                           windows_of(picture, filter.input.zero_point), convolution(filter, picture), answer));
  report.judge("y", cases, lab::hints_of(kMistakes), 0);
}

void show(std::ostream& out) {
  const Integers x = {150, 130};
  const std::int64_t bias = std::lround(kExample.bias[0] / (kExample.input.scale * kExample.weight.scale));
  const std::int64_t sum = sum_of(kExample, x, 0, {});
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
