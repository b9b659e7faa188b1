#include "tests/op_samples.h"

namespace miniqat::testing {
namespace {

/// Add, Sub, Mul and Div take the same shapes.
void add_binary_samples(const std::string& type, std::vector<OpSample>& samples) {
  // Quotients are tried well away from zero.
  const double low = type == "Div" ? 0.5 : -1;
  const double high = type == "Div" ? 2 : 1;
  const auto add = [&](const std::string& label, const Shape& a, const Shape& b) {
    samples.push_back({.type = type, .label = label, .inputs = {floats(a), floats(b)}, .low = low, .high = high});
  };
  add("same shape", {3, 5, 7}, {3, 5, 7});
  add("scalars", {}, {});
  add("scalar on the right", {3, 5}, {});
  add("scalar on the left", {}, {3, 5});
  add("one element of rank 2 on the left", {1, 1}, {7});
  add("vector along the last axis", {2, 3, 5}, {5});
  add("vector on the left", {5}, {2, 3, 5});
  add("column", {4, 7}, {4, 1});
  add("both stretched", {4, 1, 3}, {5, 1});
  add("axes in between", {2, 1, 3, 1, 2}, {1, 4, 3, 5, 2});
  add("rank 8", {1, 2, 1, 2, 1, 2, 1, 2}, {2, 1, 2, 1, 2, 1, 2, 1});
  add("size 1 axes everywhere", {1, 6, 1}, {1, 1, 6, 1});
  add("large, same shape", {129, 131}, {129, 131});
  add("large, vector along the last axis", {257, 65}, {65});
  add("large, vector on the left", {65}, {257, 65});
  add("large, column", {131, 1}, {131, 129});
  add("large, scalar", {16501}, {});
  add("large, axes in between", {7, 1, 201, 1}, {7, 3, 1, 4});
}

void add_unary_samples(std::vector<OpSample>& samples) {
  for (const char* type : {"Rsqrt", "Reciprocal"}) {
    samples.push_back({.type = type, .label = "odd size", .inputs = {floats({3, 5, 7})}, .low = 0.3, .high = 4});
    samples.push_back({.type = type, .label = "scalar", .inputs = {floats({})}, .low = 0.3, .high = 4});
    samples.push_back({.type = type, .label = "large", .inputs = {floats({129, 131})}, .low = 0.3, .high = 4});
  }
  samples.push_back({.type = "Reciprocal", .label = "negative", .inputs = {floats({9})}, .low = -4, .high = -0.3});
  for (const char* type : {"Square", "Identity"}) {
    samples.push_back({.type = type, .label = "odd size", .inputs = {floats({3, 5, 7})}, .low = -3, .high = 3});
    samples.push_back({.type = type, .label = "scalar", .inputs = {floats({})}, .low = -3, .high = 3});
    samples.push_back({.type = type, .label = "large", .inputs = {floats({129, 131})}, .low = -3, .high = 3});
  }
  samples.push_back({.type = "Identity", .label = "integers", .inputs = {{{5}, DType::kInt32}}, .low = -9, .high = 9});
}

void add_activation_samples(std::vector<OpSample>& samples) {
  for (const char* type : {"Relu", "Relu6"}) {
    samples.push_back({.type = type, .label = "both signs", .inputs = {floats({2, 5, 5, 3})}, .low = -9, .high = 9});
    samples.push_back({.type = type, .label = "all passed", .inputs = {floats({7})}, .low = 1, .high = 5});
    samples.push_back({.type = type, .label = "all clipped", .inputs = {floats({7})}, .low = -5, .high = -1});
    samples.push_back({.type = type, .label = "large", .inputs = {floats({129, 131})}, .low = -9, .high = 9});
  }
  for (const char* type : {"Sigmoid", "HardSwish"}) {
    samples.push_back({.type = type, .label = "both signs", .inputs = {floats({2, 5, 5, 3})}, .low = -9, .high = 9});
    samples.push_back({.type = type, .label = "scalar", .inputs = {floats({})}, .low = -2, .high = 2});
    samples.push_back({.type = type, .label = "large", .inputs = {floats({129, 131})}, .low = -5, .high = 5});
  }
  for (const char* alpha : {R"({"alpha": 0.01})", R"({"alpha": 0.3})", R"({"alpha": 0})", R"({"alpha": 1.5})"}) {
    const auto add = [&](const std::string& label, const Shape& shape, double low, double high) {
      samples.push_back({.type = "LeakyRelu",
                         .label = label + alpha,
                         .attributes = alpha,
                         .inputs = {floats(shape)},
                         .low = low,
                         .high = high});
    };
    add("both signs", {2, 5, 5, 3}, -9, 9);
    add("all below 0", {7}, -5, -1);
    add("large", {129, 131}, -9, 9);
  }
  for (const char* bounds : {"{}", R"({"low": 0, "high": 6})", R"({"low": 0.5, "high": 3.4e38})"}) {
    const auto add = [&](const std::string& label, const Shape& shape, double low, double high) {
      samples.push_back({.type = "Clip",
                         .label = label + bounds,
                         .attributes = bounds,
                         .inputs = {floats(shape)},
                         .low = low,
                         .high = high});
    };
    add("both signs", {2, 5, 5, 3}, -9, 9);
    add("all clipped", {7}, -9, -5);
    add("large", {129, 131}, -9, 9);
  }
  for (const char* line : {"{}", R"({"alpha": 0.4, "beta": -0.2})", R"({"alpha": -0.3, "beta": 0.9})"}) {
    const auto add = [&](const std::string& label, const Shape& shape, double low, double high) {
      samples.push_back({.type = "HardSigmoid",
                         .label = label + line,
                         .attributes = line,
                         .inputs = {floats(shape)},
                         .low = low,
                         .high = high});
    };
    add("both signs", {2, 5, 5, 3}, -9, 9);
    add("scalar", {}, -2, 2);
    add("large", {129, 131}, -5, 5);
  }
  samples.push_back({.type = "Softmax", .label = "vector", .inputs = {floats({7})}, .low = -3, .high = 3});
  samples.push_back({.type = "Softmax", .label = "matrix", .inputs = {floats({5, 10})}, .low = -3, .high = 3});
  samples.push_back({.type = "Softmax", .label = "one class", .inputs = {floats({5, 1})}, .low = -3, .high = 3});
  samples.push_back({.type = "Softmax", .label = "rank 4", .inputs = {floats({2, 3, 2, 5})}, .low = -20, .high = 20});
  samples.push_back({.type = "Softmax", .label = "large", .inputs = {floats({601, 29})}, .low = -3, .high = 3});
}

void add_dropout_samples(std::vector<OpSample>& samples) {
  const std::string half = R"({"rate": 0.5})";
  samples.push_back({.type = "Dropout", .label = "training", .attributes = half, .inputs = {floats({5, 7})}});
  samples.push_back(
      {.type = "Dropout", .label = "evaluation", .attributes = half, .inputs = {floats({5, 7})}, .training = false});
  samples.push_back({.type = "Dropout", .label = "rate 0", .attributes = R"({"rate": 0})", .inputs = {floats({5, 7})}});
  samples.push_back(
      {.type = "Dropout", .label = "rate 0.9", .attributes = R"({"rate": 0.9})", .inputs = {floats({5, 7})}});
  samples.push_back({.type = "Dropout", .label = "scalar", .attributes = half, .inputs = {floats({})}});
  samples.push_back(
      {.type = "Dropout", .label = "large", .attributes = R"({"rate": 0.3})", .inputs = {floats({131, 129})}});
}

void add_bias_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x) {
    samples.push_back({.type = "BiasAdd", .label = label, .inputs = {floats(x), floats({x.channels()})}});
  };
  add("image", {2, 3, 5, 7});
  add("matrix", {4, 10});
  add("vector", {5});
  add("one channel", {9, 1});
  add("one row", {1, 6});
  add("large, few channels", {12001, 3});
  add("large, many channels", {37, 1030});
  add("large, one channel", {40001, 1});
}

}  // namespace

std::vector<OpSample> pointwise_samples() {
  std::vector<OpSample> samples;
  for (const char* type : {"Add", "Sub", "Mul", "Div"}) add_binary_samples(type, samples);
  add_unary_samples(samples);
  add_activation_samples(samples);
  add_dropout_samples(samples);
  add_bias_samples(samples);
  return samples;
}

std::vector<BadOpSample> bad_pointwise_samples() {
  const TensorSpec integers = {{4}, DType::kInt32};
  std::vector<BadOpSample> samples;
  const auto add = [&](const std::string& type, const std::string& label, std::vector<TensorSpec> inputs,
                       const std::string& message, const std::string& attributes = "{}") {
    samples.push_back({type, label, attributes, std::move(inputs), message});
  };
  for (const char* type : {"Add", "Sub", "Mul", "Div"}) {
    add(type, "extents differ", {floats({2, 3}), floats({2, 4})}, "[2,3], [2,4]");
    add(type, "aligned at the last axis", {floats({3, 5}), floats({3})}, "axis 1 is 5 in one and 3 in the other");
    add(type, "no elements against three", {floats({0}), floats({3})}, "[0], [3]");
    add(type, "one input", {floats({3})}, "takes 2 inputs, 1 is given");
    add(type, "integers", {floats({4}), integers}, "input 1 must be float32, is int32");
  }
  for (const char* type : {"Rsqrt", "Reciprocal", "Square", "Relu", "Relu6", "Sigmoid", "HardSigmoid", "HardSwish",
                           "LeakyRelu", "Clip", "Softmax", "Dropout"}) {
    add(type, "integers", {integers}, "must be float32, is int32");
    add(type, "two inputs", {floats({3}), floats({3})}, "takes 1 input, 2 are given");
  }
  add("Identity", "no input", {}, "takes 1 input, 0 are given");
  add("Softmax", "scalar", {floats({})}, "x needs an axis; x []");
  for (const char* rate : {"1", "-0.1", "1e30"})
    add("Dropout", std::string("rate ") + rate, {floats({3})}, "rate must be in [0, 1)",
        std::string(R"({"rate": )") + rate + "}");
  for (const char* alpha : {"-0.1", "1e31"})
    add("LeakyRelu", std::string("alpha ") + alpha, {floats({3})}, "alpha must be in [0, 1e+30]",
        std::string(R"({"alpha": )") + alpha + "}");
  for (const char* name : {"alpha", "beta"})
    add("HardSigmoid", std::string(name) + " is huge", {floats({3})}, std::string(name) + " must be in [-1e+30, 1e+30]",
        std::string(R"({")") + name + R"(": -1e31})");
  for (const char* name : {"low", "high"})
    add("Clip", std::string(name) + " is huge", {floats({3})}, std::string(name) + " must be in [-3.40282e+38",
        std::string(R"({")") + name + R"(": -1e39})");
  add("Clip", "bounds are one number", {floats({3})}, "low must be less than high; low 1, high 1", R"({"low": 1})");
  add("Dropout", "rate is text", {floats({3})}, "rate", R"({"rate": "half"})");
  add("BiasAdd", "other length", {floats({2, 3}), floats({4})}, "bias has 4 channels, x has 3; x [2,3], bias [4]");
  add("BiasAdd", "matrix bias", {floats({2, 3}), floats({1, 3})}, "bias must have rank 1");
  add("BiasAdd", "scalar x", {floats({}), floats({1})}, "x needs a channel axis; x [], bias [1]");
  add("BiasAdd", "integer bias", {floats({2, 4}), integers}, "input 1 must be float32");
  return samples;
}

}  // namespace miniqat::testing
