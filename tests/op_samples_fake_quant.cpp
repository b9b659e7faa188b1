#include "tests/op_samples.h"

namespace miniqat::testing {
namespace {

// Only pass-through samples (a delay that no test reaches) are checked against finite differences.
const std::string kStraightThrough =
    "no derivative of the staircase that forward computes: finite differences see 0 or a whole step";

OpSample sample(std::string label, std::string attributes, Shape x, Shape range) {
  OpSample sample{.type = "FakeQuant",
                  .label = std::move(label),
                  .attributes = std::move(attributes),
                  .inputs = {{x}, {range}, {range}},
                  .low = -2,
                  .high = 2,
                  .unchecked_gradients = {{0, kStraightThrough}, {1, kStraightThrough}, {2, kStraightThrough}}};
  const std::size_t channels = static_cast<std::size_t>(range.elements());
  sample.values = {{}, std::vector<double>(channels, -0.7), std::vector<double>(channels, 1.1)};
  return sample;
}

/// With a range that forward updates: min and max are variables.
OpSample observing(OpSample sample) {
  sample.variables = {1, 2};
  return sample;
}

OpSample passing_through(OpSample sample) {
  sample.unchecked_gradients = {};
  return sample;
}

}  // namespace

std::vector<OpSample> fake_quant_samples() {
  return {
      observing(sample("moving average, 8 bits", R"({"range": "moving_average"})", {4, 5, 5, 3}, {})),
      observing(sample("moving average, stored range", R"({"bits": 4, "is_training": false})", {7, 11}, {})),
      observing(evaluating(sample("moving average, not training", R"({"bits": 4})", {7, 11}, {}))),
      observing(sample("all values, 5 bits, symmetric", R"({"range": "all_values", "bits": 5, "symmetric": true})",
                       {4, 5, 5, 3}, {})),
      observing(sample("all values per channel", R"({"range": "all_values", "per_channel": true})", {7, 11}, {11})),
      observing(sample("all values, dampened", R"({"range": "all_values", "bits": 4, "dampening": 0.5})", {9, 41}, {})),
      observing(sample("last value, narrow, symmetric, 4 bits",
                       R"({"range": "last_value", "bits": 4, "narrow_range": true, "symmetric": true})", {3, 3, 2, 5},
                       {})),
      observing(sample("last value per channel", R"({"range": "last_value", "per_channel": true})", {3, 3, 2, 5}, {5})),
      observing(sample("last value per channel, depthwise filter",
                       R"({"range": "last_value", "per_channel": true, "bits": 2})", {3, 3, 4, 2}, {4, 2})),
      observing(sample("last value, 16 bits, more than one mask block", R"({"range": "last_value", "bits": 16})",
                       {40, 33}, {})),
      observing(passing_through(sample("before the delay", R"({"delay": 1000000})", {6, 5}, {}))),
      sample("fixed", R"({"range": "fixed", "bits": 3})", {9, 4}, {}),
      sample("fixed per channel", R"({"range": "fixed", "bits": 3, "per_channel": true})", {9, 4}, {4}),
      passing_through(sample("fixed, before the delay", R"({"range": "fixed", "delay": 1000000})", {9, 4}, {})),
      sample("fixed, scalar x", R"({"range": "fixed"})", {}, {}),
      sample("learned", R"({"range": "learned", "bits": 4})", {9, 41}, {}),
      sample("learned, 2 bits, symmetric, per channel",
             R"({"range": "learned", "bits": 2, "narrow_range": true, "symmetric": true, "per_channel": true})",
             {3, 3, 2, 5}, {5}),
      sample("learned, symmetric in the full range", R"({"range": "learned", "bits": 3, "symmetric": true})", {9, 4},
             {}),
      sample("learned, dampened", R"({"range": "learned", "bits": 4, "dampening": 0.5})", {9, 41}, {}),
      observing(sample("last value, dampened", R"({"range": "last_value", "bits": 4, "dampening": 0.5})", {9, 41}, {})),
      sample("learned, evaluating", R"({"range": "learned", "bits": 3, "is_training": false})", {9, 4}, {}),
      passing_through(sample("learned, before the delay", R"({"range": "learned", "delay": 1000000})", {9, 4}, {})),
  };
}

std::vector<BadOpSample> bad_fake_quant_samples() {
  const auto bad = [](std::string label, std::string attributes, std::vector<TensorSpec> inputs, std::string message) {
    return BadOpSample{"FakeQuant", std::move(label), std::move(attributes), std::move(inputs), std::move(message)};
  };
  const TensorSpec x{{2, 3}}, scalar{Shape{}};
  const std::string per_channel = R"({"range": "fixed", "per_channel": true})";
  return {
      bad("1 bit", R"({"range": "fixed", "bits": 1})", {x, scalar, scalar}, "bits must be 2..16, is 1"),
      bad("17 bits", R"({"range": "fixed", "bits": 17})", {x, scalar, scalar}, "bits must be 2..16, is 17"),
      bad("decay 1", R"({"range": "fixed", "ema_decay": 1.0})", {x, scalar, scalar},
          "ema_decay must be in [0, 1), is 1"),
      bad("negative dampening", R"({"range": "fixed", "dampening": -1.0})", {x, scalar, scalar},
          "dampening must be at least 0 and finite, is -1"),
      bad("negative delay", R"({"range": "fixed", "delay": -1})", {x, scalar, scalar}, "delay must not be negative"),
      bad("integer x", R"({"range": "fixed"})", {{{2, 3}, DType::kInt32}, scalar, scalar}, "x"),
      bad("vector range per tensor", R"({"range": "fixed"})", {x, {{3}}, {{3}}}, "is [3]; x [2,3]"),
      bad("scalar range per channel", per_channel, {x, scalar, scalar}, "is []; x [2,3]"),
      bad("range of other channels", per_channel, {x, {{2}}, {{2}}}, "is [2]; x [2,3]"),
      bad("min unlike max", per_channel, {x, {{3}}, {{2, 3}}}, "min [3], max [2,3]"),
  };
}

}  // namespace miniqat::testing
