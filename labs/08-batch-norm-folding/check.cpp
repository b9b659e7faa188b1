#include <algorithm>
#include <cmath>

#include "labs/08-batch-norm-folding/lab.h"
#include "labs/chart.h"
#include "layers/reference/batch_norm.h"
#include "quantize/affine.h"

namespace lab08 {
namespace {

namespace quantize = miniqat::quantize;
namespace reference = miniqat::layers::reference;

using Values = std::vector<double>;

Values values(std::size_t count, unsigned seed, double mean, double deviation) {
  Values result;
  for (const float value : lab::bell(count, seed)) result.push_back(mean + deviation * value);
  return result;
}

struct Example {
  Layer layer;
  BatchNorm norm;
};

Example example(std::size_t channels, std::size_t inputs, unsigned seed) {
  Example made = {{values(channels * inputs, seed, 0, 1), values(channels, seed + 1, 0.3, 0.5)},
                  {values(channels, seed + 2, 1, 0.4), values(channels, seed + 3, 0, 0.5),
                   values(channels, seed + 4, 0, 2), values(channels, seed + 5, 0, 1), 0.001}};
  // From a hundredth to a few: channels differ that much.
  for (double& variance : made.norm.variance) variance = 0.01 + variance * variance;
  return made;
}

Values layer_outputs(const Layer& layer, const Values& x) {
  const std::size_t channels = layer.bias.size();
  Values y = layer.bias;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) y[i % channels] += layer.weights[i] * x[i / channels];
  return y;
}

Values normalized(const BatchNorm& norm, const Values& x) {
  Values y(x.size());
  reference::batch_norm<double>(1, static_cast<std::int64_t>(x.size()), norm.epsilon, x.data(), norm.gamma.data(),
                                norm.beta.data(), norm.mean.data(), norm.variance.data(), y.data());
  return y;
}

/// How the right answer and the mistakes differ.
struct Ways {
  /// What gamma is divided by.
  double (*sigma)(double variance, double epsilon);
  double (*bias)(double bias, double mean, double factor, double beta);
  bool by_input = false;
};

double right_sigma(double variance, double epsilon) { return 1 / reference::inverse_sigma(variance, epsilon); }
double right_bias(double bias, double mean, double factor, double beta) { return (bias - mean) * factor + beta; }

Layer folded_by(const Example& e, const Ways& ways) {
  const std::size_t channels = e.norm.gamma.size(), inputs = e.layer.weights.size() / channels;
  Layer folded = e.layer;
  Values factors;
  for (std::size_t c = 0; c < channels; ++c)
    factors.push_back(e.norm.gamma[c] / ways.sigma(e.norm.variance[c], e.norm.epsilon));
  for (std::size_t i = 0; i < folded.weights.size(); ++i)
    folded.weights[i] *= factors[ways.by_input ? i / inputs : i % channels];
  for (std::size_t c = 0; c < channels; ++c)
    folded.bias[c] = ways.bias(e.layer.bias[c], e.norm.mean[c], factors[c], e.norm.beta[c]);
  return folded;
}

/// The outputs for an input, then weights and bias themselves.
lab::Numbers numbers_of(const Layer& folded, const Example& e, const Values& x) {
  if (folded.weights.size() != e.layer.weights.size() || folded.bias.size() != e.layer.bias.size()) return {};
  return layer_outputs(folded, x);
}

lab::Case case_for(std::size_t channels, std::size_t inputs, unsigned seed,
                   Layer (*answer)(const Layer&, const BatchNorm&)) {
  const Example e = example(channels, inputs, seed);
  const Values x = values(inputs, seed + 6, 0, 1);
  const Ways ways[] = {
      {[](double v, double epsilon) { return std::sqrt(v) + epsilon; }, right_bias},
      {[](double v, double epsilon) { return v + epsilon; }, right_bias},
      {right_sigma, [](double bias, double mean, double factor, double beta) { return bias + beta - mean * factor; }},
      {right_sigma, [](double bias, double, double factor, double beta) { return bias * factor + beta; }},
      {right_sigma, right_bias, true}};
  lab::Case result = {.question = lab::text(static_cast<double>(inputs)) + " inputs, " +
                                  lab::text(static_cast<double>(channels)) + " channels",
                      .right = normalized(e.norm, layer_outputs(e.layer, x)),
                      .got = numbers_of(answer(e.layer, e.norm), e, x),
                      .mistaken = {}};
  for (const Ways& way : ways) result.mistaken.push_back(numbers_of(folded_by(e, way), e, x));
  return result;
}

/// The page's layer: one input, one channel.
const Example kSmall = {{{0.5}, {0.1}}, {{2}, {-1}, {0.3}, {0.24}, 0.01}};

double rounded(double weight) {
  return quantize::fake_quantize(
      quantize::grid_of<double>({-2, 2}, {.bits = 4, .narrow_range = true, .symmetric = true}), weight);
}

}  // namespace

void check(lab::Report& report, Layer (*answer)(const Layer& layer, const BatchNorm& norm)) {
  report.judge(
      "the outputs of the folded layer",
      {case_for(1, 3, 51, answer), case_for(4, 2, 61, answer), case_for(3, 10, 71, answer)},
      {"Your epsilon is added to the root. It belongs to the variance: sqrt(variance + epsilon).",
       "You divide by the variance. The batch norm divides by its root, the standard deviation.",
       "Your new bias does not scale the layer's own bias. The batch norm sees x W + bias: both are scaled, "
       "(bias - mean) * factor + beta.",
       "You forget the mean. The new bias is (bias - mean) * factor + beta.",
       "You scale by input, or by blocks, instead of by output channel. The channel is the last axis: weight i "
       "belongs to channel i % channels."});
}

void show(std::ostream& out) {
  const Layer folded = folded_by(kSmall, {right_sigma, right_bias});
  const double sigma = right_sigma(kSmall.norm.variance[0], kSmall.norm.epsilon);
  out << "layer: weight 0.5, bias 0.1; batch norm: gamma 2, beta -1, mean 0.3, variance 0.24, epsilon 0.01\nsigma "
      << lab::text(sigma, "%.1f") << ", factor " << lab::text(2 / sigma, "%.1f") << "\nfolded: weight "
      << lab::text(folded.weights[0], "%.1f") << ", bias " << lab::text(folded.bias[0], "%.1f") << "\n";
  for (const double x : {0.0, 1.0, -2.0})
    out << "x = " << lab::text(x, "%4.1f") << ": layer " << lab::text(layer_outputs(kSmall.layer, {x})[0], "%5.2f")
        << ", then batch norm " << lab::text(normalized(kSmall.norm, layer_outputs(kSmall.layer, {x}))[0], "%5.2f")
        << "; folded " << lab::text(layer_outputs(folded, {x})[0], "%5.2f") << "\n";

  out << "step    sigma of the batch    weight / it, rounded    moving sigma    weight / it, rounded\n";
  const Values noise = values(6, 9, 0, 1);
  double moving = 0.5;
  for (std::size_t step = 0; step < noise.size(); ++step) {
    const double batch = 0.5 + 0.06 * noise[step];
    moving = 0.95 * moving + 0.05 * batch;
    out << lab::text(static_cast<double>(step + 1), "%4.0f") << lab::text(batch, "%22.3f")
        << lab::text(rounded(0.5 / batch), "%24.3f") << lab::text(moving, "%16.3f")
        << lab::text(rounded(0.5 / moving), "%24.3f") << "\n";
  }
}

std::string figure() {
  constexpr std::size_t kChannels = 8;
  const Example e = example(kChannels, 30, 81);
  const Layer folded = folded_by(e, {right_sigma, right_bias});
  lab::Points before, after;
  for (std::size_t c = 0; c < kChannels; ++c) {
    double most = 0, most_folded = 0;
    for (std::size_t i = c; i < folded.weights.size(); i += kChannels) {
      most = std::max(most, std::abs(e.layer.weights[i]));
      most_folded = std::max(most_folded, std::abs(folded.weights[i]));
    }
    before.emplace_back(static_cast<double>(c) - 0.18, most);
    after.emplace_back(static_cast<double>(c) + 0.18, most_folded);
  }
  lab::Chart chart("Folding makes channels unequal", {"channel", -0.6, 7.6, {0, 1, 2, 3, 4, 5, 6, 7}},
                   {"largest weight", 0, 20, {0, 5, 10, 15, 20}});
  chart.bars(before, 0.34, lab::Colour::kOrange);
  chart.bars(after, 0.34, lab::Colour::kBlue);
  chart.label(4.7, 17, "before folding", lab::Colour::kOrange);
  chart.label(4.7, 15.2, "after", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab08
