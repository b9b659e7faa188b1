#include "tests/op_samples.h"

namespace miniqat::testing {
namespace {

/// All inputs [5]. Variances and gammas come from (0.2, 3): away from where sigma has no derivative, and from the step
/// that a small gamma makes in BatchNormScale.
OpSample sample(std::string type, std::string label, std::string attributes, int inputs) {
  return {.type = std::move(type),
          .label = std::move(label),
          .attributes = std::move(attributes),
          .inputs = std::vector<TensorSpec>(inputs, TensorSpec{{5}}),
          .low = 0.2,
          .high = 3};
}

}  // namespace

std::vector<OpSample> folding_samples() {
  OpSample small_gammas = sample("BatchNormScale", "gamma around zero", R"({"floor": 0.01})", 2);
  small_gammas.values = {{0, 0.001, -0.001, -0.02, 0.01}, {}};
  OpSample no_variance = sample("BatchNormFold", "variance zero", "{}", 4);
  no_variance.values = {{}, {}, {}, {0, 0, 0, 0, 0}};
  no_variance.unchecked_gradients = {
      {3, "a difference of 2^-18 is not small beside epsilon: the derivative of sigma bends there"}};
  return {
      sample("BatchNormFold", "default epsilon", "{}", 4),
      sample("BatchNormFold", "large epsilon", R"({"epsilon": 0.5})", 4),
      no_variance,
      sample("BatchNormCorrection", "never frozen", "{}", 5),
      sample("BatchNormCorrection", "before the freeze", R"({"epsilon": 0.5, "freeze_delay": 1000000})", 5),
      sample("BatchNormCorrection", "frozen", R"({"epsilon": 0.5, "freeze_delay": 0})", 5),
      evaluating(sample("BatchNormCorrection", "frozen, evaluation run", R"({"freeze_delay": 0})", 5)),
      sample("BatchNormScale", "default epsilon", "{}", 2),
      sample("BatchNormScale", "large epsilon", R"({"epsilon": 0.5})", 2),
      small_gammas,
  };
}

std::vector<BadOpSample> bad_folding_samples() {
  const TensorSpec four{{4}}, five{{5}}, matrix{{4, 4}}, whole{{4}, DType::kInt32};
  const auto bad = [](std::string type, std::string label, std::string attributes, std::vector<TensorSpec> inputs,
                      std::string message) {
    return BadOpSample{std::move(type), std::move(label), std::move(attributes), std::move(inputs), std::move(message)};
  };
  return {
      bad("BatchNormFold", "mean of other channels", "{}", {four, four, five, four},
          "mean must have the shape of gamma; gamma [4], mean [5]"),
      bad("BatchNormFold", "matrix", "{}", {matrix, matrix, matrix, matrix}, "gamma must have rank 1"),
      bad("BatchNormFold", "three inputs", "{}", {four, four, four}, "4 inputs"),
      bad("BatchNormFold", "integer beta", "{}", {four, whole, four, four}, "int32"),
      bad("BatchNormFold", "negative epsilon", R"({"epsilon": -0.001})", {four, four, four, four},
          "epsilon must be at least 0 and finite, is -0.001"),
      bad("BatchNormCorrection", "moving variance of other channels", "{}", {four, four, four, four, five},
          "moving_variance must have the shape of gamma; gamma [4], moving_variance [5]"),
      bad("BatchNormCorrection", "four inputs", "{}", {four, four, four, four}, "5 inputs"),
      bad("BatchNormCorrection", "negative epsilon", R"({"epsilon": -1})", {four, four, four, four, four},
          "epsilon must be at least 0 and finite, is -1"),
      bad("BatchNormCorrection", "freeze_delay below -1", R"({"freeze_delay": -2})", {four, four, four, four, four},
          "freeze_delay must be a step or -1 for never, is -2"),
      bad("BatchNormScale", "variance of other channels", "{}", {four, five},
          "moving_variance must have the shape of gamma; gamma [4], moving_variance [5]"),
      bad("BatchNormScale", "scalar", "{}", {{Shape{}}, {Shape{}}}, "gamma must have rank 1"),
      bad("BatchNormScale", "floor 0", R"({"floor": 0})", {four, four}, "floor must be above 0 and finite, is 0"),
      bad("BatchNormScale", "negative epsilon", R"({"epsilon": -1})", {four, four},
          "epsilon must be at least 0 and finite, is -1"),
  };
}

}  // namespace miniqat::testing
