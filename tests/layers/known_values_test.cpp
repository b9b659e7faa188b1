// What ops make of numbers that can be computed by hand, on both backends; the points where a formula changes, NaNs and
// infinities.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/graph/op_queries.h"
#include "layers/layers.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::known_values_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// An op on some inputs: a row of a table.
struct KnownValues {
  std::string name;
  std::shared_ptr<const Op> op;
  std::vector<Tensor> inputs;
  Tensor y;
  /// What arrives at y, and the gradients of the inputs. Without it only y is computed.
  Tensor d_y = {};
  std::vector<Tensor> d_inputs = {};
  /// Of each number, relative to it.
  double tolerance = 0;
};

Tensor numbers(const Shape& shape, const std::vector<float>& values) { return Tensor::from<float>(shape, values); }
Tensor line(const std::vector<float>& values) { return numbers({static_cast<std::int64_t>(values.size())}, values); }
/// A row of pixels of one channel.
Tensor pixels(const std::vector<float>& values) {
  return numbers({1, 1, static_cast<std::int64_t>(values.size()), 1}, values);
}
/// 1, 2, 3, ...
Tensor counted(const Shape& shape) {
  Tensor tensor(shape);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 1.0f);
  return tensor;
}

std::vector<KnownValues> functions() {
  std::vector<KnownValues> rows;
  // A gradient of 2 arrives at every number.
  const auto add = [&](const std::string& name, const std::shared_ptr<Op>& op, const std::vector<float>& x,
                       const std::vector<float>& y, const std::vector<float>& d_x, double tolerance = 0) {
    rows.push_back({name, op, {line(x)}, line(y), line(std::vector<float>(x.size(), 2)), {line(d_x)}, tolerance});
  };
  const float below_six = std::nextafter(6.0f, 0.0f);
  add("ReluHasNoGradientAtZero", Relu::make(), {-1, -0.0f, 0, 1e-30f, 2, -kInfinity, kInfinity},
      {0, 0, 0, 1e-30f, 2, 0, kInfinity}, {0, 0, 0, 2, 2, 0, 2});
  add("Relu6HasNoGradientAtZeroAndSix", Relu6::make(), {-1, 0, 3, below_six, 6, 7, -kInfinity, kInfinity},
      {0, 0, 3, below_six, 6, 6, 0, 6}, {0, 0, 2, 2, 0, 0, 0, 0});
  add("Clip", Clip::make({.low = -0.5, .high = 2}), {-8, -0.5f, -0.25f, 0, 1.5f, 2, 8, -kInfinity, kInfinity},
      {-0.5f, -0.5f, -0.25f, 0, 1.5f, 2, 2, -0.5f, 2}, {0, 0, 2, 2, 2, 0, 0, 0, 0});
  add("HardSigmoid", HardSigmoid::make({.alpha = 0.25, .beta = 0.25}), {-8, -1, 0, 1, 2, 8, -kInfinity, kInfinity},
      {0, 0, 0.25f, 0.5f, 0.75f, 1, 0, 1}, {0, 0, 0.5f, 0.5f, 0.5f, 0, 0, 0});
  add("TheSlopeOfAHardSigmoidMayFall", HardSigmoid::make({.alpha = -0.5, .beta = 1}), {-4, 0, 1, 4}, {1, 1, 0.5f, 0},
      {0, 0, -1, 0});
  add("HardSwish", HardSwish::make(), {-1.5f, -1, 0, 1, 2}, {-0.375f, -1.0f / 3, 0, 2.0f / 3, 5.0f / 3},
      {0, 1.0f / 3, 1, 5.0f / 3, 7.0f / 3}, 5e-7);
  add("HardSwishBeyondThree", HardSwish::make(), {-3, 3, -3.1f, 3.1f, -1e30f, 1e30f, -kInfinity, kInfinity},
      {0, 3, 0, 3.1f, 0, 1e30f, 0, kInfinity}, {0, 2, 0, 2, 0, 2, 0, 2});
  add("LeakyRelu", LeakyRelu::make({.alpha = 0.25}), {-8, -1, 0, 1, 8, -kInfinity, kInfinity},
      {-2, -0.25f, 0, 1, 8, -kInfinity, kInfinity}, {0.5f, 0.5f, 0.5f, 2, 2, 0.5f, 2});
  add("LeakyReluWithAnAlphaOf0IsARelu", LeakyRelu::make({.alpha = 0}), {-3, 0, 5}, {0, 0, 5}, {0, 0, 2});
  add("Sigmoid", Sigmoid::make(), {0, 1, -1, 4, -4}, {0.5f, 0.7310586f, 0.2689414f, 0.9820138f, 0.01798621f},
      {0.5f, 0.3932239f, 0.3932239f, 0.03532541f, 0.03532541f}, 5e-6);
  add("FarAwayASigmoidIsFlat", Sigmoid::make(), {kInfinity, -kInfinity, 200, -200}, {1, 0, 1, 0}, {0, 0, 0, 0});
  // 1 / (1 + e^-x) would lose these to the sum's rounding, or to e^-x beyond float32.
  rows.push_back({.name = "SmallResultsOfASigmoidKeepTheirDigits",
                  .op = Sigmoid::make(),
                  .inputs = {line({-30, -60, -87})},
                  .y = line({9.3576230e-14f, 8.7565108e-27f, 1.6458114e-38f}),
                  .tolerance = 3e-7});
  rows.push_back({"DivisionByZeroGivesInfinity", Reciprocal::make(), {line({0, 4})}, line({kInfinity, 0.25f})});
  rows.push_back({"RootOfANegativeNumber", Rsqrt::make(), {line({-1, 4})}, line({kNaN, 0.5f})});
  rows.push_back({"SoftmaxOfLargeLogits", Softmax::make(), {line({1e4f, 1e4f, -1e4f})}, line({0.5f, 0.5f, 0})});
  // Logits of log 1, log 3 and of log 2, log 2. d_x = y * (d_y - sum of d_y * y), the sums 4 and 2.
  const float two = std::log(2.0F), three = std::log(3.0F);
  for (const Shape& shape : {Shape{2, 2}, Shape{1, 2, 2}, Shape{2, 1, 1, 2}})
    rows.push_back({miniqat::concat("SoftmaxOfRank", shape.rank()),
                    Softmax::make(),
                    {numbers(shape, {0, three, two, two})},
                    numbers(shape, {0.25F, 0.75F, 0.5F, 0.5F}),
                    numbers(shape, {16, 0, 0, 4}),
                    {numbers(shape, {3, -3, -1, 1})},
                    1e-5});
  // Whatever the rank of x, its last axis has the channels.
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 1, 3}, Shape{1, 2, 1, 3}})
    rows.push_back({miniqat::concat("BiasAddOfRank", shape.rank()),
                    BiasAdd::make(),
                    {numbers(shape, {1, 2, 3, 4, 5, 6}), line({10, 20, 30})},
                    numbers(shape, {11, 22, 33, 14, 25, 36}),
                    numbers(shape, {1, 2, 3, 40, 50, 60}),
                    {numbers(shape, {1, 2, 3, 40, 50, 60}), line({41, 52, 63})}});
  return rows;
}

std::vector<KnownValues> rearrangements() {
  std::vector<KnownValues> rows;
  // Two blocks of rows of two numbers; the inputs have 1, 2 and 3 rows in a block.
  for (const std::int64_t axis : {1, -2})
    rows.push_back(
        {axis == 1 ? "ConcatInTheMiddle" : "ConcatInTheMiddleFromTheEnd",
         Concat::make({.axis = axis}),
         {numbers({2, 1, 2}, {1, 1, 1.1F, 1.1F}), numbers({2, 2, 2}, {2, 2.5F, 2.1F, 2.6F, 2.2F, 2.7F, 2.3F, 2.8F}),
          numbers({2, 3, 2}, {3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8})},
         numbers({2, 6, 2}, {1,    1,    2,    2.5F, 2.1F, 2.6F, 3, -3, 4, -4, 5, -5,
                             1.1F, 1.1F, 2.2F, 2.7F, 2.3F, 2.8F, 6, -6, 7, -7, 8, -8}),
         counted({2, 6, 2}),
         {numbers({2, 1, 2}, {1, 2, 13, 14}), numbers({2, 2, 2}, {3, 4, 5, 6, 15, 16, 17, 18}),
          numbers({2, 3, 2}, {7, 8, 9, 10, 11, 12, 19, 20, 21, 22, 23, 24})}});
  rows.push_back({"ConcatOfChannelsByDefault",
                  Concat::make(),
                  {numbers({2, 1}, {1, 2}), numbers({2, 2}, {3, 4, 5, 6})},
                  numbers({2, 3}, {1, 3, 4, 2, 5, 6}),
                  numbers({2, 3}, {10, 20, 30, 40, 50, 60}),
                  {numbers({2, 1}, {10, 40}), numbers({2, 2}, {20, 30, 50, 60})}});
  rows.push_back({"ConcatPassesEmptyInputs",
                  Concat::make({.axis = 0}),
                  {numbers({1, 2}, {1, 2}), Tensor({0, 2}), numbers({2, 2}, {3, 4, 5, -kInfinity})},
                  numbers({3, 2}, {1, 2, 3, 4, 5, -kInfinity}),
                  numbers({3, 2}, {10, 20, 30, 40, 50, 60}),
                  {numbers({1, 2}, {10, 20}), Tensor({0, 2}), numbers({2, 2}, {30, 40, 50, 60})}});
  rows.push_back({"PadSurroundsEachAxisByItsOwnZeros",
                  Pad::make({.paddings = {{{0, 0}, {1, 0}, {1, 2}}}}),
                  {numbers({2, 1, 2}, {1, 2, 3, 4})},
                  numbers({2, 2, 5}, {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0}),
                  counted({2, 2, 5}),
                  {numbers({2, 1, 2}, {7, 8, 17, 18})}});
  rows.push_back({"PadKeepsNaNsAndInfinitiesInTheirPlaces",
                  Pad::make({.paddings = {{{1, 1}}}}),
                  {line({kNaN, kInfinity})},
                  line({0, kNaN, kInfinity, 0})});
  rows.push_back({"SliceGivesTheRestNoGradient",
                  Slice::make({.axes = {-1, 1}, .starts = {1, 0}, .ends = {3, 3}, .steps = {1, 2}}),
                  {counted({2, 3, 4})},
                  numbers({2, 2, 2}, {2, 3, 10, 11, 14, 15, 22, 23}),
                  numbers({2, 2, 2}, std::vector<float>(8, 5)),
                  {numbers({2, 3, 4}, {0, 5, 5, 0, 0, 0, 0, 0, 0, 5, 5, 0, 0, 5, 5, 0, 0, 0, 0, 0, 0, 5, 5, 0})}});
  // A NaN beside the part stays where it is; one in it is kept.
  rows.push_back({"NaNsBesideASliceDoNotMatter",
                  Slice::make({.axes = {1}, .starts = {1}, .ends = {3}}),
                  {numbers({2, 3}, {kNaN, 1, 2, 3, kNaN, 5})},
                  numbers({2, 2}, {1, 2, kNaN, 5}),
                  numbers({2, 2}, {0, 1, 2, 3}),
                  {numbers({2, 3}, {0, 0, 1, 0, 2, 3})}});
  return rows;
}

std::vector<KnownValues> views() {
  std::vector<KnownValues> rows;
  // A plan lets a view's tensors share memory where it can. Where it cannot, the op copies.
  const std::vector<float> x = {1, -2, 3, -4, 5, -6}, d = {6, 5, 4, 3, 2, 1};
  const auto add_view = [&](const std::string& name, const std::shared_ptr<Op>& op, const Shape& shape) {
    rows.push_back({name, op, {numbers({2, 3}, x)}, numbers(shape, x), numbers(shape, d), {numbers({2, 3}, d)}});
  };
  add_view("Identity", Identity::make(), {2, 3});
  add_view("ReshapeToARow", Reshape::make({{-1}}), {6});
  add_view("ReshapeToThreeAxes", Reshape::make({{1, -1, 2}}), {1, 3, 2});
  // Two images of 2x4 pixels, 1..8 and 9..16: offsets come before images.
  const Tensor dealt = numbers({8, 1, 2, 1}, {1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16});
  rows.push_back({"SpaceToBatch", SpaceToBatchNd::make({.block_shape = {2, 2}}), {counted({2, 2, 4, 1})}, dealt});
  rows.push_back({"BatchToSpace", BatchToSpaceNd::make({.block_shape = {2, 2}}), {dealt}, counted({2, 2, 4, 1})});
  rows.push_back({"SpaceToBatchKeepsChannelsTogether",
                  SpaceToBatchNd::make({.block_shape = {1, 2}}),
                  {counted({1, 2, 2, 3})},
                  numbers({2, 2, 1, 3}, {1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12})});
  // Paddings are zeros, and crops undo them.
  const std::vector<float> padded = {0, 0, 0, 0, 1, 3, 2, 0, 4, 6, 5, 0};
  rows.push_back({"SpaceToBatchOfPaddings",
                  SpaceToBatchNd::make({.block_shape = {3, 2}, .paddings = {{1, 0}, {0, 1}}}),
                  {counted({1, 2, 3, 1})},
                  numbers({6, 1, 2, 1}, padded),
                  counted({6, 1, 2, 1}),
                  {numbers({1, 2, 3, 1}, {5, 7, 6, 9, 11, 10})}});
  rows.push_back({"BatchToSpaceOfCrops",
                  BatchToSpaceNd::make({.block_shape = {3, 2}, .crops = {{1, 0}, {0, 1}}}),
                  {numbers({6, 1, 2, 1}, padded)},
                  counted({1, 2, 3, 1}),
                  counted({1, 2, 3, 1}),
                  {numbers({6, 1, 2, 1}, padded)}});
  return rows;
}

std::vector<KnownValues> means_and_products() {
  std::vector<KnownValues> rows;
  // Fast and reference take the shape of a mean from one function.
  const auto add_mean = [&](const std::string& name, const MeanAttributes& attributes, const Shape& shape,
                            const std::vector<float>& y, const std::vector<float>& d_y, const std::vector<float>& d_x) {
    const Tensor x = numbers({2, 3, 2}, {1, 2, 3, 4, 8, 9, 10, 20, 30, 40, 80, 90});
    rows.push_back(
        {name, Mean::make(attributes), {x}, numbers(shape, y), numbers(shape, d_y), {numbers({2, 3, 2}, d_x)}});
  };
  add_mean("MeanOfTheMiddle", {.axes = {1}}, {2, 2}, {4, 5, 40, 50}, {3, 6, 9, 12},
           {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
  add_mean("MeanOfTheLastAxisKept", {.axes = {-1}, .keep_dims = true}, {2, 3, 1}, {1.5F, 3.5F, 8.5F, 15, 35, 85},
           {2, 4, 6, 8, 10, 12}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  add_mean("MeanOfTwoAxesKept", {.axes = {0, -2}, .keep_dims = true}, {1, 1, 2}, {22, 27.5F}, {6, 12},
           {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  add_mean("MeanOfAll", {}, {}, {24.75F}, {12}, std::vector<float>(12, 1));
  rows.push_back({"MatMul",
                  MatMul::make(),
                  {counted({2, 3}), numbers({3, 1}, {1, 10, 100})},
                  numbers({2, 1}, {321, 654}),
                  numbers({2, 1}, {1, 2}),
                  {numbers({2, 3}, {1, 10, 100, 2, 20, 200}), numbers({3, 1}, {9, 12, 15})}});
  rows.push_back({"MatMulOfTransposes",
                  MatMul::make({.transpose_a = true, .transpose_b = true}),
                  {numbers({3, 2}, {1, 4, 2, 5, 3, 6}), numbers({1, 3}, {1, 10, 100})},
                  numbers({2, 1}, {321, 654})});
  // A 2x2 filter of 1, 10, 100, 1000 spells out which pixels it saw.
  rows.push_back({"SamePadsBelowAndToTheRightFirst",
                  Conv2d::make(),
                  {counted({1, 2, 2, 1}), numbers({2, 2, 1, 1}, {1, 10, 100, 1000})},
                  numbers({1, 2, 2, 1}, {4321, 402, 43, 4})});
  rows.push_back({"Conv2D",
                  Conv2d::make({.padding = Padding::kValid}),
                  {pixels({1, 2, 3}), numbers({1, 2, 1, 1}, {5, 7})},
                  pixels({19, 31}),
                  pixels({1, 10}),
                  {pixels({5, 57, 70}), numbers({1, 2, 1, 1}, {21, 32})}});
  rows.push_back({"DepthwiseOutputChannelsAreInputMajor",
                  DepthwiseConv2d::make(),
                  {numbers({1, 1, 1, 2}, {1, 10}), counted({1, 1, 2, 3})},
                  numbers({1, 1, 1, 6}, {1, 2, 3, 40, 50, 60})});
  return rows;
}

std::vector<KnownValues> pools() {
  std::vector<KnownValues> rows = {
      {"FirstOfEqualsTakesTheGradient",
       MaxPool::make(),
       {numbers({1, 2, 4, 1}, {1, 3, 0, 0, 3, 3, 0, 0})},
       pixels({3, 0}),
       pixels({5, 7}),
       {numbers({1, 2, 4, 1}, {0, 5, 7, 0, 0, 0, 0, 0})}},
      {"OverlappingWindowsAddUp",
       MaxPool::make({.window = {1, 2}, .strides = {1, 1}}),
       {pixels({1, 9, 2})},
       pixels({9, 9}),
       pixels({5, 7}),
       {pixels({0, 12, 0})}},
      {"PaddingIsNoAverage",
       AvgPool::make({.window = {1, 2}, .strides = {2, 2}, .padding = Padding::kSame}),
       {pixels({2, 4, 10})},
       pixels({3, 10}),
       pixels({6, 8}),
       {pixels({3, 3, 8})}},
  };
  const auto padded = MaxPool::make({.window = {1, 3}, .strides = {1, 1}, .padding = Padding::kSame});
  rows.push_back({"PaddingNeverWins", padded, {pixels({-5, -3})}, pixels({-3, -3})});
  rows.push_back({"PaddingIsNotInfinite",
                  padded,
                  {pixels({-kInfinity, -kInfinity})},
                  pixels({-kInfinity, -kInfinity}),
                  pixels({5, 7}),
                  {pixels({12, 0})}});
  const auto three = MaxPool::make({.window = {1, 3}, .strides = {3, 3}});
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<float> x = {1, 2, 3}, d_x = {0, 0, 0};
    x[i] = kNaN;
    d_x[i] = 1;
    rows.push_back(
        {miniqat::concat("MaxPoolKeepsNaN", i), three, {pixels(x)}, pixels({kNaN}), pixels({1}), {pixels(d_x)}});
  }
  // Rows and columns have their own windows, strides and padding, which fast and reference take from one function: one
  // row below and one column behind the image.
  const PoolAttributes attributes = {.window = {2, 3}, .strides = {1, 2}, .padding = Padding::kSame};
  const Tensor d_y = numbers({1, 3, 2, 1}, {6, 12, 18, 24, 30, 36});
  rows.push_back({"RowsOfAMaxPoolAreNotColumns",
                  MaxPool::make(attributes),
                  {counted({1, 3, 4, 1})},
                  numbers({1, 3, 2, 1}, {7, 8, 11, 12, 11, 12}),
                  d_y,
                  {numbers({1, 3, 4, 1}, {0, 0, 0, 0, 0, 0, 6, 12, 0, 0, 48, 60})}});
  rows.push_back({"RowsOfAnAvgPoolAreNotColumns",
                  AvgPool::make(attributes),
                  {counted({1, 3, 4, 1})},
                  numbers({1, 3, 2, 1}, {4, 5.5F, 8, 9.5F, 10, 11.5F}),
                  d_y,
                  {numbers({1, 3, 4, 1}, {1, 1, 4, 3, 4, 4, 13, 9, 13, 13, 37, 24})}});
  return rows;
}

std::vector<KnownValues> losses() {
  std::vector<KnownValues> rows;
  // A gradient of 6 arrives at the mean.
  const auto add = [&](const std::string& name, const std::shared_ptr<Op>& op, const std::vector<float>& prediction,
                       const std::vector<float>& target, float loss, const std::vector<float>& d_prediction,
                       double tolerance = 0) {
    const Shape shape = {1, static_cast<std::int64_t>(prediction.size())};
    rows.push_back({name,
                    op,
                    {numbers(shape, prediction), numbers(shape, target)},
                    numbers({}, {loss}),
                    numbers({}, {6}),
                    {numbers(shape, d_prediction)},
                    tolerance});
  };
  add("MeanSquaredError", MeanSquaredError::make(), {1, -2, 5}, {4, -2, 3}, 13.0F / 3, {-12, 0, 8}, 1e-6);
  add("ASquaredErrorThatIsNaN", MeanSquaredError::make(), {kNaN, 1}, {0, 0}, kNaN, {kNaN, 6});
  add("ATargetThatIsNaN", MeanSquaredError::make(), {0, 1}, {kNaN, 0}, kNaN, {kNaN, 6});
  add("AnInfiniteError", MeanSquaredError::make(), {kInfinity, 1}, {0, 0}, kInfinity, {kInfinity, 6});
  // Parabola up to delta, from there on a line that goes on with its slope.
  add("Huber", Huber::make(), {0.5F, -1, 3, 0}, {0, 0, 0, 2}, 1.15625F, {0.75F, -1.5F, 1.5F, -1.5F});
  add("HuberOfAWiderParabola", Huber::make({.delta = 2}), {2, 2.5F, -8}, {0, 0, 0}, (2 + 3 + 14) / 3.0F, {4, 4, -4},
      1e-6);
  add("AnInfiniteErrorOfHuber", Huber::make({.delta = 2}), {kInfinity, 0}, {0, 0}, kInfinity, {6, 0});
  add("AHuberErrorThatIsNaN", Huber::make(), {kNaN, 4}, {0, 0}, kNaN, {kNaN, 3});
  // Logits of 0 and log 3 have probabilities of 1/2 and 3/4.
  const float three = std::log(3.0F);
  add("SigmoidCrossEntropy", SigmoidCrossEntropy::make(), {0, three, -three}, {1, 0, 0},
      (std::log(2.0F) + 2 * std::log(4.0F) - three) / 3, {-1, 1.5F, 0.5F}, 1e-6);
  add("LogitsOfTenThousandAreSure", SigmoidCrossEntropy::make(), {1e4F, -1e4F, 1e4F, -1e4F}, {1, 0, 0, 1}, 5e3F,
      {0, 0, 1.5F, -1.5F});
  add("ALogitThatIsNaN", SigmoidCrossEntropy::make(), {kNaN, 0}, {0, 1}, kNaN, {kNaN, -1.5F});
  return rows;
}

void expect_numbers(const Tensor& found, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double f = found.data<float>()[i], e = expected.data<float>()[i];
    const bool same = f == e || (std::isnan(f) && std::isnan(e)) || std::abs(f - e) <= tolerance * std::abs(e);
    ASSERT_TRUE(same) << what << ", element " << i << " of " << expected.shape() << ": " << f << " instead of " << e;
  }
}

void expect_computed(const std::vector<KnownValues>& rows) {
  for (const KnownValues& row : rows) {
    SCOPED_TRACE(row.name);
    for (const Backend backend : {Backend::kFast, Backend::kReference}) {
      const std::string name = backend == Backend::kFast ? "fast " : "reference ";
      // Also where nothing is saved for backward.
      expect_numbers(testing::run_op(row.op, row.inputs, {}, backend).outputs[0], row.y, row.tolerance, name + "y");
      if (!row.d_y.defined()) continue;
      const testing::OpResult result = testing::run_op(row.op, row.inputs, {row.d_y}, backend);
      expect_numbers(result.outputs[0], row.y, row.tolerance, name + "y while training");
      for (std::size_t i = 0; i < row.d_inputs.size(); ++i)
        expect_numbers(result.d_inputs[i], row.d_inputs[i], row.tolerance, miniqat::concat(name, "d_input ", i));
    }
  }
}

TEST(KnownValues, OfFunctions) { expect_computed(functions()); }
TEST(KnownValues, OfRearrangements) { expect_computed(rearrangements()); }
TEST(KnownValues, OfViews) { expect_computed(views()); }
TEST(KnownValues, OfMeansAndProducts) { expect_computed(means_and_products()); }
TEST(KnownValues, OfPools) { expect_computed(pools()); }
TEST(KnownValues, OfLosses) { expect_computed(losses()); }

/// Long enough for vector instructions and their remainder.
TEST(KnownValues, NaNStaysNaN) {
  const Tensor nan = line(std::vector<float>(19, kNaN)), twos = line(std::vector<float>(19, 2));
  for (const std::shared_ptr<Op>& op : {Relu::make(), Relu6::make(), Clip::make(), HardSigmoid::make(),
                                        LeakyRelu::make({.alpha = 0.1}), HardSwish::make(), Sigmoid::make()})
    for (const Backend backend : {Backend::kFast, Backend::kReference}) {
      const testing::OpResult result = testing::run_op(op, {nan}, {twos}, backend);
      expect_numbers(result.outputs[0], nan, 0, std::string(op->type()));
      if (op->type() == HardSwish::kType || op->type() == Sigmoid::kType)
        expect_numbers(result.d_inputs[0], nan, 0, miniqat::concat("d_x of ", op->type()));
    }
}

/// Also in double an attribute is the float32 number, so that a table of integers rounds what training rounds.
TEST(KnownValues, AttributesAreFloats) {
  const auto of = [](const std::shared_ptr<Op>& op, double x) {
    Tensor input(Shape{1}, DType::kFloat64), output(Shape{1}, DType::kFloat64);
    input.data<double>()[0] = x;
    run_reference(*op, input, output);
    return output.data<double>()[0];
  };
  EXPECT_EQ(of(Clip::make({.low = -0.1, .high = 0.3}), -1), -double{0.1f});
  EXPECT_EQ(of(Clip::make({.low = -0.1, .high = 0.3}), 1), double{0.3f});
  EXPECT_EQ(of(LeakyRelu::make({.alpha = 0.1}), -1), -double{0.1f});
}

}  // namespace
}  // namespace miniqat::layers::known_values_test
