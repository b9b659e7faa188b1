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

/// One channel, and how the right answer and the mistakes treat it.
struct Channel {
  double gamma, beta, mean, variance, epsilon, bias;

  double sigma() const { return 1 / reference::inverse_sigma(variance, epsilon); }
};

struct Ways {
  double (*factor)(const Channel& c) = [](const Channel& c) { return c.gamma / c.sigma(); };
  double (*bias)(const Channel& c, double factor) = [](const Channel& c, double factor) {
    return (c.bias - c.mean) * factor + c.beta;
  };
  bool by_input = false;
  bool scales_weights = true;
};

Layer folded_by(const Example& e, const Ways& ways) {
  const std::size_t channels = e.norm.gamma.size(), inputs = e.layer.weights.size() / channels;
  Layer folded = e.layer;
  Values factors;
  for (std::size_t c = 0; c < channels; ++c) {
    const Channel channel = {e.norm.gamma[c],    e.norm.beta[c], e.norm.mean[c],
                             e.norm.variance[c], e.norm.epsilon, e.layer.bias[c]};
    factors.push_back(ways.factor(channel));
    folded.bias[c] = ways.bias(channel, factors[c]);
  }
  if (ways.scales_weights)
    for (std::size_t i = 0; i < folded.weights.size(); ++i)
      folded.weights[i] *= factors[ways.by_input ? i / inputs : i % channels];
  return folded;
}

struct Mistake {
  Ways ways;
  const char* hint;
};

const Mistake kMistakes[] = {
    {{.factor = [](const Channel& c) { return c.gamma / (std::sqrt(c.variance) + c.epsilon); }},
     "Your epsilon is added to the root. It belongs to the variance: sqrt(variance + epsilon)."},
    {{.factor = [](const Channel& c) { return c.gamma / std::sqrt(c.variance); }},
     "You leave out epsilon. Where the variance is small it counts: sqrt(variance + epsilon)."},
    {{.factor = [](const Channel& c) { return c.gamma / (c.variance + c.epsilon); }},
     "You divide by the variance. The batch norm divides by its root, the standard deviation."},
    {{.factor = [](const Channel& c) { return c.gamma * c.sigma(); }},
     "You multiply by sigma. The factor is gamma / sigma."},
    {{.factor = [](const Channel& c) { return c.sigma() / c.gamma; }},
     "You divide where you should multiply. The factor is gamma / sigma, and weights are multiplied by it."},
    {{.factor = [](const Channel& c) { return 1 / c.sigma(); }}, "You leave out gamma. The factor is gamma / sigma."},
    {{.bias = [](const Channel& c, double factor) { return c.bias + c.beta - c.mean * factor; }},
     "Your new bias does not scale the layer's own bias. The batch norm sees x W + bias: both are scaled, (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double factor) { return c.beta - c.mean * factor; }},
     "You lose the layer's own bias. The batch norm sees x W + bias: the new one is (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double) { return c.bias; }},
     "You keep the old bias. The mean is taken off, the factor applied and beta added: (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double factor) { return c.bias * factor + c.beta; }},
     "You forget the mean. The new bias is (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double factor) { return (c.bias + c.mean) * factor + c.beta; }},
     "You add the mean. The batch norm takes it off: (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double factor) { return c.bias * factor - c.mean + c.beta; }},
     "You do not scale the mean. It is taken off before the factor: (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double factor) { return (c.bias - c.mean) * factor; }},
     "You forget beta. The new bias is (bias - mean) * factor + beta."},
    {{.bias = [](const Channel& c, double factor) { return (c.bias - c.mean + c.beta) * factor; }},
     "You scale beta. It is added at the end, as it is: (bias - mean) * factor + beta."},
    {{.by_input = true},
     "You scale by input, or by blocks, instead of by output channel. The channel is the last axis: weight i belongs to channel i % channels."},
    {{.scales_weights = false}, "You leave the weights as they are. Each is multiplied by the factor of its channel."}};

lab::Case case_for(const std::string& question, const Example& e, const Values& x, decltype(&fold) answer) {
  const Layer got = answer(e.layer, e.norm);
  const bool has_size = got.weights.size() == e.layer.weights.size() && got.bias.size() == e.layer.bias.size();
  lab::Case result = {.question = question,
                      .right = normalized(e.norm, layer_outputs(e.layer, x)),
                      .got = has_size ? layer_outputs(got, x) : lab::Numbers(),
                      .mistaken = {}};
  if (!has_size)
    result.question += ", of which your layer has " + lab::text(static_cast<double>(got.weights.size())) +
                       " weights instead of " + lab::text(static_cast<double>(e.layer.weights.size())) + ", and " +
                       lab::text(static_cast<double>(got.bias.size())) + " biases instead of " +
                       lab::text(static_cast<double>(e.layer.bias.size()));
  for (const Mistake& mistake : kMistakes) result.mistaken.push_back(layer_outputs(folded_by(e, mistake.ways), x));
  return result;
}

lab::Case random_case(std::size_t channels, std::size_t inputs, unsigned seed, decltype(&fold) answer) {
  return case_for(
      "inputs " + lab::text(static_cast<double>(inputs)) + ", channels " + lab::text(static_cast<double>(channels)),
      example(channels, inputs, seed), values(inputs, seed + 6, 0, 1), answer);
}

/// The page's layer: one input, one channel.
const Example kSmall = {{{0.5}, {0.1}}, {{2}, {-1}, {0.3}, {0.24}, 0.01}};

double rounded(double weight) {
  return quantize::fake_quantize(
      quantize::grid_of<double>({-2, 2}, {.bits = 4, .narrow_range = true, .symmetric = true}), weight);
}

}  // namespace

void check(lab::Report& report, decltype(&fold) answer) {
  report.judge("the outputs of the folded layer",
               {case_for("the page's layer at x = 1", kSmall, {1}, answer), random_case(1, 3, 51, answer),
                random_case(4, 2, 61, answer), random_case(3, 10, 71, answer)},
               lab::hints_of(kMistakes));
}

void show(std::ostream& out) {
  const Layer folded = folded_by(kSmall, {});
  const double sigma = 1 / reference::inverse_sigma(kSmall.norm.variance[0], kSmall.norm.epsilon);
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
  const Layer folded = folded_by(e, {});
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
