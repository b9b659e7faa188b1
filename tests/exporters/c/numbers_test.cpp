// Generated C between the units of the data and the model's integers, compiled and compared bit by bit.

#include "exporters/c/numbers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/files/files.h"
#include "core/tensors/tensor.h"
#include "exporters/c/source.h"
#include "tests/exporters/c/c_project.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::c_numbers_test {
namespace {

using integer::Model;
using testing::random_images;
using testing::RandomModel;

/// From [5, 3] to four numbers, with standards whose floats need all their digits.
Model regression() {
  RandomModel net(4, {5, 3});
  net.reshape({15});
  net.fully_connected(4);
  Model model = net.finish();
  model.task = "regress";
  model.tensors.front().grid = {.scale = 0.0371f, .zero_point = 101, .bits = 8};
  for (integer::TensorInfo& tensor : model.tensors)
    if (tensor.shape == Shape{15}) tensor.grid = model.tensors.front().grid;
  model.input_standard = Standard{.mean = {0.1f, -2e4f, 1.0f / 3}, .deviation = {1.7e-3f, 333.3f, 2}};
  model.output_standard = Standard{.mean = {20.3f, 1e6f, -0.7f, 0}, .deviation = {0.3f, 1.1f, 1e-4f, 3}};
  model.check();
  return model;
}

CSource c_of(const Model& model) {
  Random random(1);
  return c_source(model, "net", "net.h", random_images(random, model, 2));
}

/// Compiled with a program that puts stdin through both functions: `program quantize`, `program dequantize`.
class Compiled {
 public:
  Compiled(const Model& model, const std::string& flags) {
    const CSource c = c_of(model);
    directory_.write("net.h", c.header);
    directory_.write("net.c", c.source);
    directory_.write("main.c", R"c(#include <stdio.h>
#include "net.h"
int main(int argc, char **argv) {
  static float x[NET_INPUT_SIZE], y[NET_OUTPUT_SIZE];
  static uint8_t input[NET_INPUT_SIZE], output[NET_OUTPUT_SIZE];
  if (argc != 2) return net_self_test();
  if (argv[1][0] == 'q')
    while (fread(x, sizeof x, 1, stdin) == 1) net_quantize(x, input), fwrite(input, sizeof input, 1, stdout);
  else
    while (fread(output, sizeof output, 1, stdin) == 1) net_dequantize(output, y), fwrite(y, sizeof y, 1, stdout);
  return 0;
}
)c");
    EXPECT_EQ(run(std::string("cc ") + testing::kStrict + " " + flags + " -o program main.c net.c"), 0);
    EXPECT_EQ(run("./program"), 0) << "the self test";
  }

  template <class To, class From>
  std::vector<To> through(const std::string& function, const std::vector<From>& values) {
    directory_.write("in", {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(From)});
    EXPECT_EQ(run("./program " + function + " < in > out"), 0);
    const std::string bytes = read_file(directory_.path() / "out");
    std::vector<To> result(bytes.size() / sizeof(To));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

 private:
  int run(const std::string& command) {
    return std::system(("cd '" + directory_.path().string() + "' && " + command).c_str());
  }

  testing::TempDir directory_;
};

/// Numbers around every tie of the grid, far outside, and none.
std::vector<float> numbers_for(const Model& model) {
  const Standard& standard = *model.input_standard;
  const integer::Grid& grid = model.tensor(model.input).grid;
  std::vector<float> numbers;
  for (int q = -3; q <= grid.quant_max() + 3; ++q)
    for (const float offset : {0.0f, 0.5f, 0.49999f})
      for (std::size_t channel = 0; channel < standard.mean.size(); ++channel) {
        const float real = (static_cast<float>(q - grid.zero_point) + offset) * grid.scale;
        numbers.push_back(static_cast<float>(standard.restored(channel, real)));
      }
  using Limits = std::numeric_limits<float>;
  for (const float odd : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max(), 0.0f})
    for (int i = 0; i < 3; ++i) numbers.push_back(odd);
  while (numbers.size() % static_cast<std::size_t>(model.tensor(model.input).shape.elements()) != 0)
    numbers.push_back(1);
  return numbers;
}

TEST(CNumbers, AreTheEnginesBitByBit) {
  const Model model = regression();
  const integer::Grid &in = model.tensor(model.input).grid, &out = model.tensor(model.output).grid;
  const std::vector<float> numbers = numbers_for(model);
  std::vector<std::uint8_t> expected, outputs;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    expected.push_back(integer::quantize(in, model.input_standard->standardised(i % 3, numbers[i])));
  std::vector<float> restored;
  for (int q = 0; q <= out.quant_max(); ++q)
    for (std::size_t k = 0; k < 4; ++k) {
      outputs.push_back(static_cast<std::uint8_t>(q));
      restored.push_back(static_cast<float>(model.output_standard->restored(k, integer::dequantize(out, q))));
    }
  for (const char* flags : {"-O0 -fsanitize=address,undefined -fno-sanitize-recover=all", "-O2"}) {
    Compiled program(model, flags);
    EXPECT_EQ(program.through<std::uint8_t>("quantize", numbers), expected) << flags;
    EXPECT_EQ(program.through<float>("dequantize", outputs), restored) << flags;
  }
}

TEST(CNumbers, OnlyWhatTheModelHasIsWritten) {
  Model model = regression();
  const CSource whole = c_of(model);
  EXPECT_NE(whole.header.find("void net_run(const uint8_t *input, uint8_t *output);"), std::string::npos);
  EXPECT_NE(whole.header.find("net_dequantize gives in the units of the data"), std::string::npos);
  EXPECT_EQ(whole.header.find("class"), std::string::npos) << whole.header;
  EXPECT_EQ(whole.source.find("best"), std::string::npos);
  model.input_standard = {};
  const CSource outputs = c_of(model);
  EXPECT_EQ(outputs.source.find("net_quantize"), std::string::npos);
  EXPECT_NE(outputs.source.find("net_dequantize"), std::string::npos);
  EXPECT_EQ(whole.footprint.constants - outputs.footprint.constants, 2 * 3 * 4);
  model.output_standard = {};
  model.task = "multilabel";
  const CSource labels = c_of(model);
  EXPECT_EQ(labels.header.find("quantize"), std::string::npos);
  EXPECT_NE(labels.header.find("above NET_OUTPUT_ZERO_POINT."), std::string::npos) << labels.header;
  model.task = "reconstruct";
  EXPECT_NE(c_of(model).header.find("anomaly"), std::string::npos);
  model.task = "";
  model.input_standard = regression().input_standard;
  const CSource classes = c_of(model);
  EXPECT_NE(classes.header.find("int net_run(const uint8_t *input, uint8_t *output);"), std::string::npos);
  EXPECT_NE(classes.header.find("void net_quantize(const float *x, uint8_t *input);"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::exporters::c_numbers_test
