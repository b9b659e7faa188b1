#include "tests/cli/tiny_task.h"

#include <cstdint>

#include "core/tensors/random.h"

namespace miniqat::testing {
namespace {

constexpr int kClasses = 10;

void append_big_endian(std::string& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
}

void write_split(const TempDir& place, const std::string& stem, int count, int side) {
  std::string images, labels;
  for (const std::uint32_t word : {0x803, count, side, side}) append_big_endian(images, word);
  for (const std::uint32_t word : {0x801, count}) append_big_endian(labels, word);
  Random random(hash_text(stem));
  for (int i = 0; i < count; ++i) {
    const int label = i % kClasses;
    labels += static_cast<char>(label);
    for (int pixel = 0; pixel < side * side; ++pixel) {
      const bool bright = pixel % kClasses == label || pixel / 7 == label;
      images += static_cast<char>((bright ? 160 : 0) + random.below(90));
    }
  }
  place.write(stem + "-images-idx3-ubyte", images);
  place.write(stem + "-labels-idx1-ubyte", labels);
}

}  // namespace

std::filesystem::path write_tiny_digits(const TempDir& place, const std::string& name, int train, int test, int side) {
  write_split(place, name + "/train", train, side);
  write_split(place, name + "/t10k", test, side);
  return place.path() / name;
}

std::string tiny_classifier() {
  return R"({"format": "miniqat.graph", "version": 1, "nodes": [
    {"name": "images", "op": "Placeholder", "attrs": {"shape": [4, 8, 8, 1]}},
    {"name": "conv1/weights", "op": "Variable", "attrs": {"shape": [3, 3, 1, 4], "initializer": {"type": "he_normal"}}},
    {"name": "conv1/Conv2D", "op": "Conv2D", "inputs": ["images", "conv1/weights"]},
    {"name": "conv1/biases", "op": "Variable", "attrs": {"shape": [4], "initializer": {"type": "constant", "value": 0}}},
    {"name": "conv1/BiasAdd", "op": "BiasAdd", "inputs": ["conv1/Conv2D", "conv1/biases"]},
    {"name": "conv1/Relu", "op": "Relu", "inputs": ["conv1/BiasAdd"]},
    {"name": "pool1", "op": "MaxPool", "inputs": ["conv1/Relu"], "attrs": {"window": [2, 2], "strides": [2, 2]}},
    {"name": "flatten", "op": "Reshape", "inputs": ["pool1"], "attrs": {"shape": [-1, 64]}},
    {"name": "dropout", "op": "Dropout", "inputs": ["flatten"], "attrs": {"rate": 0.2}},
    {"name": "fc/weights", "op": "Variable", "attrs": {"shape": [64, 10], "initializer": {"type": "glorot_uniform"}}},
    {"name": "fc/MatMul", "op": "MatMul", "inputs": ["dropout", "fc/weights"]},
    {"name": "fc/biases", "op": "Variable", "attrs": {"shape": [10], "initializer": {"type": "constant", "value": 0}}},
    {"name": "fc/BiasAdd", "op": "BiasAdd", "inputs": ["fc/MatMul", "fc/biases"]}],
   "outputs": ["fc/BiasAdd"]})";
}

std::string tiny_classifier_with_batch_norm() {
  std::string text = tiny_classifier();
  const std::size_t begin = text.find("    {\"name\": \"conv1/biases\""),
                    end = text.find("    {\"name\": \"conv1/Relu\"");
  const auto vector = [](const std::string& name, int value, const std::string& more = "") {
    return R"(    {"name": "conv1/)" + name + R"(", "op": "Variable", "attrs": {"shape": [4])" + more +
           R"(, "initializer": {"type": "constant", "value": )" + std::to_string(value) + "}}},\n";
  };
  const std::string still = R"(, "trainable": false)";
  text.replace(begin, end - begin,
               vector("gamma", 1) + vector("beta", 0) + vector("moving_mean", 0, still) +
                   vector("moving_variance", 1, still) +
                   R"(    {"name": "conv1/BiasAdd", "op": "BatchNorm", "inputs": ["conv1/Conv2D", "conv1/gamma",
     "conv1/beta", "conv1/moving_mean", "conv1/moving_variance"], "attrs": {"decay": 0.9}},
)");
  for (std::size_t at; (at = text.find("conv1/BiasAdd")) != std::string::npos;) text.replace(at, 13, "conv1/BatchNorm");
  return text;
}

TinyTaskTest::TinyTaskTest() {
  write_tiny_digits(place_, "digits", 32, 20);
  place_.write("tiny.json", tiny_classifier());
  place_.write("norm.json", tiny_classifier_with_batch_norm());
}

Arguments TinyTaskTest::train_command(const std::string& out, const Arguments& more) {
  return "train --model tiny.json --dataset mnist --data-dir digits --steps 12 --threads 1 --log-every 1" +
         Arguments{"--out", out} + more;
}

}  // namespace miniqat::testing
