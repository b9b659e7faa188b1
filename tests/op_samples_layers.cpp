#include "tests/op_samples.h"

namespace miniqat::testing {
namespace {

void add_convolution_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const Shape& filter, const std::string& attributes) {
    samples.push_back({.type = label.starts_with("depthwise") ? "DepthwiseConv2d" : "Conv2D",
                       .label = label,
                       .attributes = attributes,
                       .inputs = {floats(x), floats(filter)}});
  };
  add("defaults", {2, 5, 6, 3}, {3, 3, 3, 4}, "{}");
  add("one channel in, 5x5", {2, 7, 7, 1}, {5, 5, 1, 8}, "{}");
  add("VALID", {2, 6, 5, 3}, {3, 2, 3, 4}, R"({"padding": "VALID"})");
  add("stride 2 SAME", {1, 8, 7, 3}, {3, 3, 3, 5}, R"({"strides": [2, 2]})");
  add("unequal strides VALID", {1, 7, 8, 2}, {2, 3, 2, 3}, R"({"strides": [2, 3], "padding": "VALID"})");
  add("dilated SAME", {1, 7, 8, 2}, {3, 3, 2, 3}, R"({"dilations": [2, 3]})");
  add("dilated VALID", {1, 9, 7, 2}, {3, 2, 2, 3}, R"({"dilations": [2, 3], "padding": "VALID"})");
  add("stride beyond window", {1, 7, 7, 2}, {2, 2, 2, 3}, R"({"strides": [3, 4]})");
  add("window beyond image", {1, 2, 3, 2}, {7, 5, 2, 3}, "{}");
  add("EXPLICIT stride 2", {1, 8, 6, 3}, {3, 3, 3, 4},
      R"({"strides": [2, 2], "padding": "EXPLICIT", "pads": [1, 1, 1, 1]})");
  add("EXPLICIT dilated", {1, 6, 5, 2}, {3, 2, 2, 3},
      R"({"dilations": [2, 1], "padding": "EXPLICIT", "pads": [4, 0, 1, 1]})");
  add("1x1 filter", {2, 4, 4, 16}, {1, 1, 16, 32}, "{}");
  add("1x1 image", {3, 1, 1, 5}, {3, 3, 5, 7}, "{}");
  add("large", {4, 14, 14, 32}, {5, 5, 32, 64}, "{}");

  add("depthwise defaults", {2, 5, 6, 3}, {3, 3, 3, 1}, "{}");
  add("depthwise multiplier 2", {2, 5, 4, 3}, {3, 3, 3, 2}, "{}");
  add("depthwise multiplier 3 VALID", {1, 5, 6, 4}, {2, 3, 4, 3}, R"({"padding": "VALID"})");
  add("depthwise stride 2", {2, 8, 7, 16}, {3, 3, 16, 1}, R"({"strides": [2, 2]})");
  add("depthwise dilated", {1, 7, 7, 8}, {3, 3, 8, 1}, R"({"dilations": [2, 2]})");
  add("depthwise one channel", {2, 5, 5, 1}, {3, 3, 1, 4}, "{}");
  add("depthwise window beyond image", {1, 2, 2, 3}, {5, 5, 3, 1}, "{}");
  add("depthwise EXPLICIT", {2, 8, 5, 3}, {3, 4, 3, 2},
      R"({"strides": [2, 1], "padding": "EXPLICIT", "pads": [1, 3, 0, 2]})");
  add("depthwise large", {4, 14, 14, 72}, {3, 3, 72, 1}, "{}");
}

void add_matmul_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& a, const Shape& b, const std::string& attributes) {
    samples.push_back({.type = "MatMul", .label = label, .attributes = attributes, .inputs = {floats(a), floats(b)}});
  };
  add("plain", {3, 5}, {5, 4}, "{}");
  add("a transposed", {5, 3}, {5, 4}, R"({"transpose_a": true})");
  add("b transposed", {3, 5}, {4, 5}, R"({"transpose_b": true})");
  add("both transposed", {5, 3}, {4, 5}, R"({"transpose_a": true, "transpose_b": true})");
  add("row by column", {1, 7}, {7, 1}, "{}");
  add("column by row", {7, 1}, {1, 5}, "{}");
  add("one element", {1, 1}, {1, 1}, "{}");
  add("large", {64, 400}, {400, 120}, "{}");
}

void add_pool_samples(std::vector<OpSample>& samples) {
  for (const char* type : {"MaxPool", "AvgPool"}) {
    const auto add = [&](const std::string& label, const Shape& x, const std::string& attributes) {
      samples.push_back({.type = type, .label = label, .attributes = attributes, .inputs = {floats(x)}});
    };
    add("defaults", {2, 6, 4, 3}, "{}");
    add("defaults with a rest", {2, 7, 5, 3}, "{}");
    add("SAME", {2, 7, 5, 3}, R"({"padding": "SAME"})");
    add("strides left out", {1, 6, 7, 2}, R"({"window": [2, 3]})");
    add("overlapping", {1, 7, 7, 5}, R"({"window": [3, 3], "strides": [2, 2]})");
    add("overlapping SAME", {1, 8, 7, 5}, R"({"window": [3, 2], "strides": [1, 2], "padding": "SAME"})");
    add("stride beyond window", {1, 7, 8, 3}, R"({"window": [2, 2], "strides": [3, 4]})");
    add("window beyond image", {1, 2, 3, 2}, R"({"window": [7, 5], "strides": [1, 1], "padding": "SAME"})");
    add("whole image", {2, 5, 5, 17}, R"({"window": [5, 5]})");
    add("more than 256 taps", {1, 18, 18, 2}, R"({"window": [17, 17], "strides": [1, 1]})");
    add("EXPLICIT", {1, 8, 6, 5},
        R"({"window": [3, 3], "strides": [2, 2], "padding": "EXPLICIT", "pads": [1, 1, 1, 1]})");
    add("EXPLICIT, unequal", {2, 5, 4, 3},
        R"({"window": [3, 2], "strides": [1, 2], "padding": "EXPLICIT", "pads": [2, 0, 1, 1]})");
    add("large", {8, 28, 28, 32}, "{}");
  }
}

void add_batch_norm_samples(std::vector<OpSample>& samples) {
  const auto add = [&](const std::string& label, const Shape& x, const std::string& attributes, bool training) {
    const TensorSpec per_channel = floats({x.channels()});
    samples.push_back({.type = "BatchNorm",
                       .label = label,
                       .attributes = attributes,
                       .inputs = {floats(x), per_channel, per_channel, per_channel, per_channel},
                       .low = 0.2,
                       .high = 3,
                       .variables = {3, 4},
                       .training = training});
  };
  add("training", {3, 4, 2, 5}, "{}", true);
  add("training, matrix", {7, 3}, R"({"epsilon": 0.1, "decay": 0.5})", true);
  add("training, one channel", {4, 3, 3, 1}, "{}", true);
  add("evaluation run", {3, 4, 2, 5}, "{}", false);
  add("evaluation op in a training run", {3, 4, 2, 5}, R"({"is_training": false})", true);
  add("before the freeze", {3, 4, 2, 5}, R"({"freeze_delay": 1000000})", true);
  add("frozen", {3, 4, 2, 5}, R"({"freeze_delay": 0})", true);
  add("frozen, evaluation run", {3, 4, 2, 5}, R"({"freeze_delay": 0})", false);
  add("large", {8, 14, 14, 33}, "{}", true);
}

}  // namespace

std::vector<OpSample> layer_samples() {
  std::vector<OpSample> samples;
  add_convolution_samples(samples);
  add_matmul_samples(samples);
  add_pool_samples(samples);
  add_batch_norm_samples(samples);
  return samples;
}

std::vector<BadOpSample> bad_layer_samples() {
  std::vector<BadOpSample> samples;
  const auto add = [&](const std::string& type, const std::string& label, const std::string& attributes,
                       const std::vector<Shape>& shapes, const std::string& message) {
    BadOpSample sample{.type = type, .label = label, .attributes = attributes, .inputs = {}, .message = message};
    for (const Shape& shape : shapes) sample.inputs.push_back(floats(shape));
    samples.push_back(sample);
  };
  for (const char* type : {"Conv2D", "DepthwiseConv2d"}) {
    add(type, "channels differ", "{}", {{32, 28, 28, 8}, {5, 5, 16, 32}},
        "filter expects 16 input channels, input has 8; input [32,28,28,8], filter [5,5,16,32]");
    add(type, "image of rank 3", "{}", {{28, 28, 8}, {5, 5, 8, 1}}, "input must have rank 4");
    add(type, "filter of rank 2", "{}", {{1, 28, 28, 8}, {8, 1}}, "filter must have rank 4");
    add(type, "no filter", "{}", {{1, 28, 28, 8}}, "2 inputs");
    add(type, "empty batch", "{}", {{0, 28, 28, 8}, {5, 5, 8, 1}}, "[0,28,28,8]");
    add(type, "image too small", R"({"padding": "VALID"})", {{1, 3, 9, 8}, {5, 5, 8, 1}}, "[1,3,9,8]");
    add(type, "stride 0", R"({"strides": [0, 1]})", {{1, 9, 9, 8}, {5, 5, 8, 1}}, "strides");
    add(type, "absurd dilation", R"({"dilations": [1, 9223372036854775807]})", {{1, 9, 9, 8}, {5, 5, 8, 1}},
        "dilations");
    add(type, "unknown padding", R"({"padding": "FULL"})", {{1, 9, 9, 8}, {5, 5, 8, 1}}, "FULL");
    add(type, "three pads", R"({"padding": "EXPLICIT", "pads": [1, 1, 1]})", {{1, 9, 9, 8}, {5, 5, 8, 1}},
        "four whole numbers");
    add(type, "pads of SAME", R"({"pads": [1, 1, 1, 1]})", {{1, 9, 9, 8}, {5, 5, 8, 1}}, "EXPLICIT");
  }
  add("MatMul", "inner extents differ", "{}", {{128, 7}, {8, 10}},
      "a has 7 columns, b has 8 rows; a [128,7], b [8,10]");
  add("MatMul", "inner extents differ, transposed", R"({"transpose_b": true})", {{128, 7}, {7, 10}}, "b transposed");
  add("MatMul", "image", "{}", {{128, 7, 7, 64}, {3136, 10}}, "Reshape");
  add("MatMul", "vector", "{}", {{128, 7}, {7}}, "rank 1");
  for (const char* type : {"MaxPool", "AvgPool"}) {
    add(type, "matrix", "{}", {{28, 28}}, "input must have rank 4");
    add(type, "image too small", R"({"window": [3, 3]})", {{1, 2, 9, 8}}, "[1,2,9,8]");
    add(type, "window 0", R"({"window": [0, 2]})", {{1, 9, 9, 8}}, "window");
    add(type, "negative stride", R"({"strides": [2, -1]})", {{1, 9, 9, 8}}, "strides");
    add(type, "pad as large as the window", R"({"padding": "EXPLICIT", "pads": [0, 0, 2, 0]})", {{1, 9, 9, 8}},
        "less than the window");
    add(type, "empty image", "{}", {{1, 0, 9, 8}}, "[1,0,9,8]");
  }
  add("BatchNorm", "gamma of other channels", "{}", {{2, 4, 4, 8}, {4}, {8}, {8}, {8}}, "gamma [4]");
  add("BatchNorm", "scalar", "{}", {{}, {1}, {1}, {1}, {1}}, "channel axis");
  add("BatchNorm", "two inputs", "{}", {{2, 8}, {8}}, "5 inputs");
  add("BatchNorm", "negative epsilon", R"({"epsilon": -0.001})", {{2, 8}, {8}, {8}, {8}, {8}}, "epsilon");
  add("BatchNorm", "freeze_delay below -1", R"({"freeze_delay": -2})", {{2, 8}, {8}, {8}, {8}, {8}},
      "freeze_delay must be a step or -1 for never, is -2");
  add("BatchNorm", "decay above 1", R"({"decay": 1.5})", {{2, 8}, {8}, {8}, {8}, {8}}, "decay");
  return samples;
}

}  // namespace miniqat::testing
