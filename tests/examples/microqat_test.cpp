// microqat.cpp beside the library: the same grids, gradients, training steps and integers. The file comes as it is,
// with its main() renamed by the compiler's command line.

#include "examples/microqat.cpp"

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "core/graph/source_ops.h"
#include "core/tensors/random.h"
#include "integer/reference/engine.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "quantize/convert/convert.h"
#include "quantize/reference/fake_quant.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::microqat_test {
namespace {

using microqat::Bytes;
using microqat::Floats;

constexpr int kBatch = 20;

/// Random, some of them far out, and 0.
Floats numbers(Random& random, std::size_t count, double width) {
  Floats result = {0};
  while (result.size() < count) result.push_back(static_cast<float>((random.uniform() - 0.4) * width));
  return result;
}

TEST(Microqat, GridsAndFakeQuantAreTheSpecifications) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const int bits = 2 + i % 7;
    const Floats seen = numbers(random, 5, std::exp2(i % 30 - 15));
    const microqat::Range range = microqat::range_of(seen);
    const microqat::Grid grid = microqat::grid_of(range, bits);
    const Affine<float> expected = quantize::reference::grid<float>({range.min, range.max}, {.bits = bits});
    EXPECT_EQ(grid.scale, expected.scale);
    EXPECT_EQ(grid.zero_point, expected.zero_point);
    EXPECT_EQ(grid.nudged_min(), expected.nudged_min);
    EXPECT_EQ(grid.nudged_max(), expected.nudged_max);

    const Floats x = numbers(random, 100, 1.5 * (range.max - range.min)), d_y = numbers(random, 100, 1);
    Floats y(100), d_x(100);
    quantize::reference::fake_quant_forward<float>(x, {&expected, 1}, y.data());
    quantize::reference::fake_quant_backward<float>(x, d_y.data(), {&expected, 1}, d_x.data(), nullptr, nullptr);
    EXPECT_EQ(microqat::fake_quant_forward(grid, x, true), y);
    EXPECT_EQ(microqat::fake_quant_backward(grid, x, d_y, true), d_x);
    EXPECT_EQ(microqat::fake_quant_forward(grid, x, false), x);
    EXPECT_EQ(microqat::fake_quant_backward(grid, x, d_y, false), d_y);
    EXPECT_NE(y, x);
    EXPECT_NE(d_x, d_y);
  }
}

TEST(Microqat, BitsAreOneDigit) {
  for (std::string word : {"4x", "04", "", "1", "9", "-", "8 "}) {
    std::string name = "microqat";
    char* arguments[] = {name.data(), word.data()};
    EXPECT_EQ(microqat_main(2, arguments), 2) << word;
  }
}

TEST(Microqat, MovingRangesAreTheSpecification) {
  Random random(2);
  microqat::MovingRange moving;
  const quantize::reference::RangeRule rule = {.ema_decay = microqat::MovingRange::kDecay};
  float min = 0, max = 0, updates = 0;
  for (int i = 0; i < 50; ++i) {
    const microqat::Range seen = microqat::range_of(numbers(random, 5, 1 + i));
    moving.update(seen);
    quantize::Range<float> range = {seen.min, seen.max};
    quantize::Observation<float> observation = {.ranges = {&range, 1}};
    quantize::reference::learn_ranges(rule, observation, &min, &max, &updates);
    EXPECT_EQ(moving.range.min, min) << i;
    EXPECT_EQ(moving.range.max, max) << i;
  }
}

/// The network of microqat.cpp in the library, with the same weights.
struct Pair {
  Pair(int bits, microqat::Network& micro) {
    using namespace layers;
    images = placeholder(graph, "images", {kBatch, microqat::kSize, microqat::kSize, 1});
    const Output filter =
        variable(graph, "conv/weights", {microqat::kKernel, microqat::kKernel, 1, microqat::kFilters});
    Output x = conv2d(graph, "conv/Conv2D", images, filter, {.padding = Padding::kValid});
    x = bias_add(graph, "conv/BiasAdd", x, variable(graph, "conv/biases", {microqat::kFilters}));
    x = max_pool(graph, "MaxPool", relu(graph, "conv/Relu", x), {.window = {2, 2}});
    x = reshape(graph, "Reshape", x, {.shape = {kBatch, microqat::kFeatures}});
    x = matmul(graph, "dense/MatMul", x, variable(graph, "dense/weights", {microqat::kFeatures, microqat::kClasses}));
    x = bias_add(graph, "dense/BiasAdd", x, variable(graph, "dense/biases", {microqat::kClasses}));
    graph.set_outputs({x});
    options = {.weight_bits = bits,
               .activation_bits = bits,
               .full_range_weights = true,
               .logits_bits = 8,
               .quant_delay = 2,  // the library counts steps from 1
               .ema_decay = microqat::MovingRange::kDecay};
    evaluation = graph.clone();
    quantize::create_eval_graph(evaluation, options);
    quantize::create_training_graph(graph, options);
    labels = placeholder(graph, "labels", {kBatch}, DType::kInt32);
    loss = softmax_cross_entropy(graph, graph.outputs()[0], labels);
    for (const auto& [name, parameter] : parameters(micro)) {
      Tensor value(session.variable(name).shape());
      std::ranges::copy(parameter->value, value.data<float>());
      session.set_variable(name, value);
    }
  }

  static std::vector<std::pair<std::string, microqat::Parameter*>> parameters(microqat::Network& micro) {
    return {{"conv/weights", &micro.conv_w},
            {"conv/biases", &micro.conv_b},
            {"dense/weights", &micro.dense_w},
            {"dense/biases", &micro.dense_b}};
  }

  Floats stored(const std::string& name) {
    const Tensor value = session.variable(name);
    return {value.values<float>().begin(), value.values<float>().end()};
  }

  Graph graph, evaluation;
  quantize::RewriteOptions options;
  Output images, labels, loss;
  Session session{graph};
};

/// Up to `share` of the largest number: sums are added up in another order, after which a number may round to the other
/// of two integers.
void expect_near(const Floats& found, const Floats& expected, double share, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0;
  for (const float number : expected) largest = std::max(largest, std::abs(double{number}));
  EXPECT_GT(largest, 0) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], share * largest) << what << " " << i;
}

/// Steps before quant_delay and behind it: losses, gradients, weights, momenta and ranges.
TEST(Microqat, TrainingStepsAreThoseOfTheLibrary) {
  for (const int bits : {8, 4}) {
    std::mt19937 random(3);
    microqat::Network micro(bits, random);
    Pair pair(bits, micro);
    const optim::Sgd optimizer({.learning_rate = 0.05, .momentum = 0.9});
    for (int step = 0; step < 4; ++step) {
      const microqat::Digits digits = microqat::draw_digits(kBatch, random);
      std::vector<int> all;
      for (int i = 0; i < kBatch; ++i) all.push_back(i);
      const Floats pixels = digits.reals(all);
      Tensor x(pair.images.shape()), labels({kBatch}, DType::kInt32);
      std::ranges::copy(pixels, x.data<float>());
      std::ranges::copy(digits.labels, labels.data<std::int32_t>());
      const float expected = pair.session.train_step(pair.loss, optimizer, {{pair.images, x}, {pair.labels, labels}});
      const float loss = microqat::train_step(micro, pixels, digits.labels, 0.05f, step >= 1);
      EXPECT_NEAR(loss, expected, 1e-3 * expected) << bits << " bits, step " << step;

      const double rounding = step == 0 ? 1e-5 : 5e-3;
      const NamedTensors saved = pair.session.checkpoint().tensors;
      for (const auto& [name, parameter] : Pair::parameters(micro)) {
        const auto momentum = saved.at("optimizer:momentum/" + name).values<float>();
        const std::string what = concat(name, " of ", bits, " bits, step ", step);
        expect_near(parameter->velocity, Floats(momentum.begin(), momentum.end()), rounding, what + ", momentum");
        if (name.ends_with("weights") || step > 0) expect_near(parameter->value, pair.stored(name), rounding, what);
      }
      const auto range = [&](const std::string& quantizer) {
        return Floats{pair.stored(quantizer + "/min")[0], pair.stored(quantizer + "/max")[0]};
      };
      expect_near({micro.hidden_range.range.min, micro.hidden_range.range.max}, range("conv/act_quant"), 1e-3,
                  "hidden");
      expect_near({micro.logits_range.range.min, micro.logits_range.range.max}, range("dense/act_quant"), 5e-3,
                  "logits");
    }
  }
}

/// Of the library's layer. Below 7 bits its sums are counted in finer units, which only biases and multipliers show.
void expect_layer(const microqat::IntegerLayer& found, const integer::Operation& operation, int bits) {
  const auto& expected = std::get<integer::Layer>(operation.action);
  EXPECT_EQ(found.w, expected.weights);
  EXPECT_EQ(found.w_zero_point, expected.weight_zero_points[0]);
  if (bits < 7) return;
  EXPECT_EQ(found.b, expected.bias);
  EXPECT_EQ(found.mantissa, expected.multipliers[0].mantissa);
  EXPECT_EQ(found.shift, expected.multipliers[0].shift);
}

/// From the same weights and ranges the same integers. With 4 bits biases are rounded to larger units here, which moves
/// some of the logits by a step of their 8 bits, or two.
TEST(Microqat, IntegersAreThoseOfTheLibrary) {
  for (const int bits : {8, 7, 4}) {
    std::mt19937 random(4);
    microqat::Network micro(bits, random);
    const microqat::Digits digits = microqat::draw_digits(40, random);
    for (int first = 0; first < 40; first += kBatch)
      for (int times = 0; times < 2; ++times) {
        std::vector<int> which;
        for (int i = 0; i < kBatch; ++i) which.push_back(first + i);
        const Bytes labels(digits.labels.begin() + first, digits.labels.begin() + first + kBatch);
        microqat::train_step(micro, digits.reals(which), labels, 0.05f, first > 0);
      }

    Pair pair(bits, micro);
    const auto set = [&](const std::string& name, float value) {
      Tensor tensor(pair.session.variable(name).shape());
      tensor.data<float>()[0] = value;
      pair.session.set_variable(name, tensor);
    };
    set("conv/act_quant/min", micro.hidden_range.range.min), set("conv/act_quant/max", micro.hidden_range.range.max);
    set("dense/act_quant/min", micro.logits_range.range.min), set("dense/act_quant/max", micro.logits_range.range.max);
    // What a step would store of the weights.
    const auto store_range = [&](const std::string& layer, const microqat::Parameter& weights) {
      const microqat::Range range = microqat::range_of(weights.value);
      set(layer + "/weights_quant/min", range.min), set(layer + "/weights_quant/max", range.max);
    };
    store_range("conv", micro.conv_w), store_range("dense", micro.dense_w);
    const integer::Model model =
        quantize::convert(pair.evaluation, pair.session.variables(), {.input = integer::Grid{.scale = 1 / 255.0f}});

    const auto [conv, dense] = microqat::integer_layers(micro);
    expect_layer(conv, model.operations.front(), bits);
    expect_layer(dense, model.operations.back(), bits);
    Tensor images({kBatch, microqat::kSize, microqat::kSize, 1}, DType::kUInt8);
    std::copy_n(digits.pixels.begin(), images.elements(), images.data<std::uint8_t>());
    const Tensor logits = integer::reference::run(model, images).back();
    for (int n = 0; n < kBatch; ++n) {
      const Bytes found = microqat::integer_inference(conv, dense, &digits.pixels[n * microqat::kPixels]);
      for (int c = 0; c < microqat::kClasses; ++c)
        EXPECT_NEAR(found[c], logits.data<std::uint8_t>()[n * microqat::kClasses + c], bits < 7 ? 2 : 0)
            << bits << " bits, picture " << n;
    }
  }
}

}  // namespace
}  // namespace miniqat::microqat_test
