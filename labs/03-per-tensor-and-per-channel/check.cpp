#include <algorithm>
#include <cmath>

#include "labs/03-per-tensor-and-per-channel/lab.h"
#include "labs/chart.h"
#include "quantize/affine.h"

namespace lab03 {
namespace {

namespace quantize = miniqat::quantize;

using Weights = std::vector<float>;
using Ranges = std::vector<quantize::Range<float>>;

/// Weights whose channels have different sizes, as those behind a folded batch norm have (lab 8).
Weights weights_of(int channels, std::size_t each, unsigned seed) {
  Weights weights = lab::bell(each * channels, seed);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const int channel = static_cast<int>(i) % channels;
    weights[i] = weights[i] * std::ldexp(1.0F, -channel) + (channel % 2 == 0 ? 0.0F : std::ldexp(0.4F, -channel));
  }
  return weights;
}

/// The range of each of `groups` parts; element i belongs to part group_of(i).
template <class GroupOf>
Ranges ranges_of(const Weights& weights, std::size_t groups, GroupOf group_of) {
  Ranges ranges(groups, {INFINITY, -INFINITY});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    quantize::Range<float>& range = ranges[group_of(i)];
    range = {std::min(range.min, weights[i]), std::max(range.max, weights[i])};
  }
  return ranges;
}

template <class GroupOf>
Weights rounded(const Weights& weights, const Ranges& ranges, int bits, GroupOf group_of) {
  Weights result(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const quantize::Range<float> range = ranges[group_of(i)];
    result[i] = fake_quantize(range.min, range.max, bits, weights[i]);
  }
  return result;
}

template <class GroupOf>
Weights rounded(const Weights& weights, std::size_t groups, int bits, GroupOf group_of) {
  return rounded(weights, ranges_of(weights, groups, group_of), bits, group_of);
}

Weights per_tensor(const Weights& weights, int bits) {
  return rounded(weights, 1, bits, [](std::size_t) { return std::size_t{0}; });
}

Weights per_channel(const Weights& weights, std::size_t channels, int bits) {
  return rounded(weights, channels, bits, [channels](std::size_t i) { return i % channels; });
}

lab::Case case_for(int channels, std::size_t each, int bits, decltype(&quantize_weights) answer) {
  const Weights weights = weights_of(channels, each, static_cast<unsigned>(channels) + 7);
  const std::size_t count = static_cast<std::size_t>(channels);
  const auto channel_of = [count](std::size_t i) { return i % count; };
  Ranges from_zero = ranges_of(weights, count, channel_of), both_sides = from_zero;
  for (quantize::Range<float>& range : from_zero) range = {0, std::max(range.max, 0.0F)};
  for (quantize::Range<float>& range : both_sides) {
    const float most = std::max(-range.min, range.max);
    range = {-most, most};
  }
  return {.question = lab::text(channels) + " channels of " + lab::text(static_cast<double>(each)) + " weights at " +
                      lab::text(bits) + " bits",
          .right = lab::numbers(per_channel(weights, count, bits)),
          .got = lab::numbers(answer(weights, channels, bits)),
          .mistaken = {lab::numbers(per_tensor(weights, bits)),
                       lab::numbers(rounded(weights, count, bits, [each](std::size_t i) { return i / each; })),
                       lab::numbers(rounded(weights, from_zero, bits, channel_of)),
                       lab::numbers(rounded(weights, both_sides, bits, channel_of))}};
}

/// The root of the mean squared error of a channel, as a share of the channel's largest weight.
double relative_error(const Weights& weights, const Weights& y, std::size_t channel, std::size_t channels) {
  double squares = 0, largest = 0, count = 0;
  for (std::size_t i = channel; i < weights.size(); i += channels, ++count) {
    squares += (double{y[i]} - weights[i]) * (double{y[i]} - weights[i]);
    largest = std::max(largest, std::abs(double{weights[i]}));
  }
  return std::sqrt(squares / count) / largest;
}

constexpr std::size_t kChannels = 6, kEach = 50;

}  // namespace

float fake_quantize(float min, float max, int bits, float x) {
  return quantize::fake_quantize(quantize::grid_of<float>({min, max}, {.bits = bits}), x);
}

void check(lab::Report& report, decltype(&quantize_weights) answer) {
  report.judge(
      "the weights on their grids",
      {case_for(2, 3, 4, answer), case_for(4, 9, 4, answer), case_for(3, 25, 8, answer), case_for(1, 8, 2, answer)},
      {"You have one range for all channels. The large channel then decides about the steps of the small ones. Find min and max of each channel by itself.",
       "You take channels for blocks. The channel is the last axis, the one that changes fastest: element i belongs to channel i % channels.",
       "Your ranges begin at 0. Weights are negative, too: a range needs the smallest weight as well as the largest.",
       "Your range of a channel reaches from -m to m, with m its largest magnitude. That is a method (symmetric ranges), but the question here is for the range from the smallest to the largest weight."});
}

void show(std::ostream& out) {
  const Weights small = {8, 0.5F, -6, -0.25F, 3, 0.125F};
  const Weights together = per_tensor(small, 4), apart = per_channel(small, 2, 4);
  out << "weights      ";
  for (const float weight : small) out << lab::text(weight, "%8.3f");
  out << "\nper tensor   ";
  for (const float weight : together) out << lab::text(weight, "%8.3f");
  out << "\nper channel  ";
  for (const float weight : apart) out << lab::text(weight, "%8.3f");
  out << "\nscales: per tensor " << lab::text(14.0 / 15, "%.3f") << ", of the second channel "
      << lab::text(0.75 / 15, "%.3f") << "\n";

  const Weights weights = weights_of(kChannels, kEach, 1);
  out << "channel    largest weight    error per tensor    error per channel\n";
  for (std::size_t c = 0; c < kChannels; ++c) {
    double largest = 0;
    for (std::size_t i = c; i < weights.size(); i += kChannels)
      largest = std::max<double>(largest, std::abs(weights[i]));
    out << lab::text(static_cast<double>(c), "%7.0f") << lab::text(largest, "%18.3f")
        << lab::text(100 * relative_error(weights, per_tensor(weights, 4), c, kChannels), "%19.1f%%")
        << lab::text(100 * relative_error(weights, per_channel(weights, kChannels, 4), c, kChannels), "%20.1f%%")
        << "\n";
  }
}

std::string figure() {
  const Weights weights = weights_of(kChannels, kEach, 1);
  lab::Chart chart("Errors of six channels at 4 bits", {"channel", -0.6, 5.6, {0, 1, 2, 3, 4, 5}},
                   {"error in % of the channel's largest weight", 0, 50, {0, 10, 20, 30, 40, 50}});
  lab::Points together, apart;
  for (std::size_t c = 0; c < kChannels; ++c) {
    const double x = static_cast<double>(c);
    together.emplace_back(x - 0.18, 100 * relative_error(weights, per_tensor(weights, 4), c, kChannels));
    apart.emplace_back(x + 0.18, 100 * relative_error(weights, per_channel(weights, kChannels, 4), c, kChannels));
  }
  chart.bars(together, 0.34, lab::Colour::kOrange);
  chart.bars(apart, 0.34, lab::Colour::kBlue);
  chart.label(-0.4, 44, "one range for all", lab::Colour::kOrange);
  chart.label(-0.4, 39, "a range for each channel", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab03
