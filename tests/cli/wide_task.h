#pragma once

#include <string>
#include <vector>

#include "core/engine/session.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing {

/// tiny_classifier() with thrice the channels and a second convolution, of 12 channels: enough for integers and
/// bfloat16.
inline std::string wide_classifier() {
  std::string text = replaced(replaced(tiny_classifier(), "[3, 3, 1, 4]", "[3, 3, 1, 12]"), "[4],", "[12],");
  text = replaced(replaced(text, "[64, 10]", "[192, 10]"), "[-1, 64]", "[-1, 192]");
  text = replaced(text, R"("op": "Reshape", "inputs": ["pool1"])", R"("op": "Reshape", "inputs": ["conv2/Relu"])");
  const std::string flatten = R"(    {"name": "flatten")";
  return replaced(
      text, flatten,
      R"(    {"name": "conv2/weights", "op": "Variable", "attrs": {"shape": [3, 3, 12, 12], "initializer": {"type": "he_normal"}}},
    {"name": "conv2/Conv2D", "op": "Conv2D", "inputs": ["pool1", "conv2/weights"]},
    {"name": "conv2/biases", "op": "Variable", "attrs": {"shape": [12], "initializer": {"type": "constant", "value": 0}}},
    {"name": "conv2/BiasAdd", "op": "BiasAdd", "inputs": ["conv2/Conv2D", "conv2/biases"]},
    {"name": "conv2/Relu", "op": "Relu", "inputs": ["conv2/BiasAdd"]},
)" + flatten);
}

/// What makes `train` round factors of its products, as far as this processor can.
inline std::vector<std::string> rounding_flags() {
  std::vector<std::string> flags;
  if (has_bfloat16_products()) flags = {"--gradients bfloat16", "--compute bfloat16"};
  if (has_int8_products()) flags.emplace_back("--gradients int8");
  return flags;
}

}  // namespace miniqat::testing
