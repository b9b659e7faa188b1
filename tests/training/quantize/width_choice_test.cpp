#include <gtest/gtest.h>

#include <cmath>

#include "training/quantize/bit_allocation.h"
#include "training/quantize/sensitivity.h"

namespace miniqat::training::width_choice_test {
namespace {

using Widths = std::vector<std::int64_t>;

QuantizerSensitivity quantizer(const std::string& layer, bool weights, std::int64_t elements,
                               const std::vector<double>& increases) {
  QuantizerSensitivity one{.layer = layer, .is_weights = weights, .elements = elements};
  for (const double increase : increases) one.alone.push_back({.loss_increase = increase});
  return one;
}

/// At 8, 4 and 2 bits. Weights of a: 10 elements, of b: 30; outputs of 5 elements, and the logits.
Sensitivity two_layers() {
  Sensitivity sensitivity;
  sensitivity.bits = {8, 4, 2};
  sensitivity.quantizers = {quantizer("a", true, 10, {0, 0.02, 0.52}), quantizer("a", false, 5, {0, 0.1, 0.2}),
                            quantizer("b", true, 30, {0.01, 0.04, 0.31}), quantizer("b", false, 2, {0, 1, 2})};
  sensitivity.quantizers[3].fixed_bits = 8;
  sensitivity.weight_front = greedy_front(costs_of(sensitivity.quantizers, true), sensitivity.bits);
  sensitivity.activation_front = greedy_front(costs_of(sensitivity.quantizers, false), sensitivity.bits);
  return sensitivity;
}

/// The front goes over 320, 200, 160, 100 and 80 bits of 40 weights.
TEST(WidthChoice, ABigLastStepIsGivenBack) {
  const Sensitivity sensitivity = two_layers();
  const WidthChoice choice = weights_within(sensitivity, {.average_bits = 150.0 / 40});
  EXPECT_EQ(choice.widths, (Widths{8, 2})) << "the walk alone ends at 4 and 2 bits";
  EXPECT_EQ(choice.average, 140.0 / 40);
  EXPECT_NEAR(choice.loss_increase, 0.31, 1e-12);
  EXPECT_EQ(weights_within(sensitivity, {.average_bits = 2}).widths, (Widths{2, 2}));
  EXPECT_EQ(weights_within(sensitivity, {.average_bits = 99}).widths, (Widths{8, 8}));
  const WidthChoice packed = weights_within(sensitivity, {.bytes = 18});
  EXPECT_EQ(packed.widths, (Widths{8, 2}));
  EXPECT_EQ(bytes_of(sensitivity, packed), 18);
  EXPECT_EQ(weights_within(sensitivity, {.bytes = 17}).widths, (Widths{4, 2}));
}

TEST(WidthChoice, OutputsAreWithoutTheLogits) {
  const Sensitivity sensitivity = two_layers();
  EXPECT_EQ(activations_within(sensitivity, {.average_bits = 5}).widths, Widths{4});
  EXPECT_EQ(activations_within(sensitivity, {.bytes = 18}).widths, Widths{8});
  EXPECT_EQ(activations_within(sensitivity, {.bytes = 18, .activation_bits = 2}).widths, Widths{2});
  const auto layers =
      layer_bits_of(sensitivity.quantizers, choice_at(sensitivity, 4, true), choice_at(sensitivity, 2, false));
  EXPECT_EQ(layers, (std::vector<quantize::LayerBits>{{.pattern = "a", .weight_bits = 4, .activation_bits = 2},
                                                      {.pattern = "b", .weight_bits = 4, .activation_bits = 8}}));
}

TEST(WidthChoice, TheLogitsAloneHaveNoAverage) {
  Sensitivity sensitivity = two_layers();
  sensitivity.quantizers.erase(sensitivity.quantizers.begin(), sensitivity.quantizers.begin() + 2);
  sensitivity.activation_front = greedy_front(costs_of(sensitivity.quantizers, false), sensitivity.bits);
  EXPECT_FALSE(activations_within(sensitivity, {.average_bits = 5}).average);
  EXPECT_FALSE(choice_at(sensitivity, 4, false).average);
  EXPECT_EQ(choice_at(sensitivity, 4, true).average, 4);
}

TEST(WidthChoice, OneWidthForAllIsACandidateWhereTheBudgetAllowsIt) {
  const Sensitivity sensitivity = two_layers();
  const BitBudget four = {.average_bits = 4}, bytes = {.bytes = 20};
  for (const BitBudget& budget : {four, bytes}) {
    EXPECT_FALSE(allows_everywhere(budget, sensitivity, 8));
    EXPECT_TRUE(allows_everywhere(budget, sensitivity, 4));
    EXPECT_TRUE(allows_everywhere(budget, sensitivity, 2));
  }
  EXPECT_FALSE(allows_everywhere({.bytes = 19}, sensitivity, 4));
  const WidthChoice choice = choice_at(sensitivity, 4, true);
  EXPECT_EQ(choice.widths, (Widths{4, 4}));
  EXPECT_EQ(choice.average, 4);
  EXPECT_NEAR(choice.loss_increase, 0.06, 1e-12);
}

/// lenet5 after an epoch: widths by layer of 2.6 bits lost 0.0493 where 4 bits for all, within the budget, lost 0.0137.
TEST(WidthChoice, OneWidthForAllWinsIfItLosesLess) {
  const auto candidate = [](std::optional<std::int64_t> uniform, double loss) {
    ChosenBits one;
    one.measured.evaluation.loss = loss;
    one.uniform_bits = uniform;
    return one;
  };
  std::vector<ChosenBits> candidates = {candidate({}, 0.0493), candidate(4, 0.0137), candidate(2, 1.4)};
  EXPECT_EQ(best_of(candidates).uniform_bits, 4);
  candidates[0] = candidate({}, 0.0137);
  EXPECT_FALSE(best_of(candidates).uniform_bits) << "of equals the first";
  candidates[0] = candidate({}, std::nan(""));
  EXPECT_EQ(best_of(candidates).uniform_bits, 4);
  candidates = {candidate({}, 0.01), candidate(4, std::nan(""))};
  EXPECT_FALSE(best_of(candidates).uniform_bits);
}

}  // namespace
}  // namespace miniqat::training::width_choice_test
