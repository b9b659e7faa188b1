#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/errors.h"
#include "tests/integer/random_model.h"

namespace miniqat::integer::model_check_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::RandomModel;

/// What check() says of a model after `spoil` had its way with it.
std::string complaint(const RandomModel& net, const std::function<void(Model&)>& spoil) {
  Model model = net.finish();
  spoil(model);
  return error_of([&] { model.check(); });
}

template <class T>
T& last(Model& model) {
  return std::get<T>(model.operations.back().action);
}

/// An image of 4x4 with two channels, and a convolution.
RandomModel convolution() {
  RandomModel net(1, {4, 4, 2});
  net.conv2d(3);
  return net;
}

TEST(ModelCheck, RandomNetworksPass) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_NO_THROW(testing::random_network(seed).check()) << seed;
}

TEST(ModelCheck, NamesArePlain) {
  for (const std::string bad : {"", "two\nlines", "\x01", "\xc3\xbc"}) {
    EXPECT_TRUE(mentions(complaint(convolution(), [&](Model& m) { m.tensors[1].name = bad; }), {"name of a tensor"}));
    EXPECT_TRUE(mentions(complaint(convolution(), [&](Model& m) { m.operations[0].name = bad; }), {"an operation"}));
  }
  EXPECT_TRUE(mentions(complaint(convolution(), [](Model& m) { m.name = "two\nlines"; }), {"control characters"}));
  EXPECT_EQ(complaint(convolution(),
                      [](Model& m) {
                        m.name =
                            "Gr\xc3\xbc\xc3\x9f"
                            "e";
                      }),
            "");
  EXPECT_TRUE(mentions(complaint(convolution(), [](Model& m) { m.tensors[1].name = "input"; }), {"\"input\"", "two"}));
}

TEST(ModelCheck, EveryOutputHasTheNameOfItsClass) {
  const auto of = [](const std::vector<std::string>& names) {
    return complaint(convolution(), [&](Model& model) { model.class_names = names; });
  };
  const auto outputs = static_cast<std::size_t>(convolution().finish().tensors.back().shape.elements());
  EXPECT_EQ(of(std::vector<std::string>(outputs, "gr\xc3\xbcn")), "");
  EXPECT_TRUE(mentions(of({"one"}), {"1 name of classes", concat("output of ", outputs)}));
  EXPECT_TRUE(mentions(of(std::vector<std::string>(outputs, "two\nlines")), {"name of a class", "control"}));
}

TEST(ModelCheck, StandardsFitTheirEnds) {
  const auto of = [](const std::string& task, const std::optional<Standard>& input,
                     const std::optional<Standard>& output) {
    return complaint(convolution(), [&](Model& model) {
      model.task = task;
      model.input_standard = input;
      model.output_standard = output;
    });
  };
  const auto outputs = static_cast<std::size_t>(convolution().finish().tensors.back().shape.elements());
  const Standard two = {.mean = {1, 2}, .deviation = {3, 4}};
  const Standard all = {.mean = std::vector<float>(outputs, 1), .deviation = std::vector<float>(outputs, 2)};
  EXPECT_EQ(of("", two, {}), "");
  EXPECT_EQ(of("regress", two, all), "");
  for (const std::string_view task : kTasksOfNumbers) EXPECT_EQ(of(std::string(task), two, {}), "");
  EXPECT_TRUE(mentions(of("classify", {}, {}), {"\"classify\"", "unknown"}));
  EXPECT_TRUE(mentions(of("", {}, all), {"output is standardised"}));
  EXPECT_TRUE(mentions(of("", all, {}), {"its input", "not 2 of each"}));
  EXPECT_TRUE(mentions(of("regress", {}, two), {"its output", concat("not ", outputs)}));
  for (const float bad : {0.0f, -1.0f, std::nanf(""), HUGE_VALF})
    EXPECT_TRUE(mentions(of("", Standard{.mean = {1, 2}, .deviation = {3, bad}}, {}), {"deviation"})) << bad;
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF})
    EXPECT_TRUE(mentions(of("", Standard{.mean = {bad, 2}, .deviation = {3, 4}}, {}), {"a mean of"})) << bad;
}

TEST(ModelCheck, Tensors) {
  const auto of = [](const std::function<void(TensorInfo&)>& spoil) {
    return complaint(convolution(), [&](Model& model) { spoil(model.tensors[1]); });
  };
  for (const float bad : {0.0f, -1.0f, std::nanf(""), HUGE_VALF, 1e-40f})
    EXPECT_TRUE(mentions(of([&](TensorInfo& t) { t.grid.scale = bad; }), {"Conv2D_0_out", "scale"})) << bad;
  for (const int bad : {-1, 0, 1, 9, 32, INT32_MAX})
    EXPECT_TRUE(mentions(of([&](TensorInfo& t) { t.grid.bits = bad; }), {"Conv2D_0_out", "2 to 8"})) << bad;
  for (const int bad : {-1, 256, INT32_MIN})
    EXPECT_TRUE(mentions(of([&](TensorInfo& t) { t.grid.zero_point = bad; }), {"zero point"})) << bad;
  EXPECT_TRUE(mentions(of([](TensorInfo& t) { t.shape = {4, 0, 3}; }), {"empty"}));
  EXPECT_TRUE(mentions(of([](TensorInfo& t) { t.shape = {1, 1, 1, 1, 1, 1, 1, 1}; }), {"no room for a batch"}));
}

TEST(ModelCheck, OrderOfOperations) {
  const auto of = [](const std::function<void(Model&)>& spoil) {
    RandomModel net = convolution();
    net.rescale();
    return complaint(net, spoil);
  };
  EXPECT_TRUE(mentions(of([](Model& m) { m.input = 1; }), {"not the first"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.output = 3; }), {"its output is tensor 3 of 3"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.operations[1].inputs = {-1}; }), {"Rescale_1", "-1"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.operations[1].inputs = {2}; }), {"read before it is made"}));
  EXPECT_TRUE(mentions(of([](Model& m) { std::swap(m.operations[0], m.operations[1]); }), {"read before"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.operations[1].output = 1; }), {"made twice"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.operations[0].output = 0; }), {"made twice"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.operations.pop_back(); }), {"made by no operation"}));
  EXPECT_TRUE(mentions(of([](Model& m) { m.operations[1].inputs = {}; }), {"takes 1 input, not 0"}));
}

TEST(ModelCheck, Layers) {
  const auto of = [](const std::function<void(Layer&)>& spoil) {
    return complaint(convolution(), [&](Model& model) { spoil(last<Layer>(model)); });
  };
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weights.pop_back(); }), {"Conv2D_0", "weights for"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.filter = {2, 3}; }), {"has weights [2,3]"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.filter = {}; }), {"has weights []"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.kind = LayerKind::kDepthwiseConv2d; }), {"its output is"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.kind = LayerKind::kFullyConnected; }), {"its input is"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weight_bits = 9; }), {"9 bits"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weight_bits = 1; }), {"1 bits"}));
  EXPECT_TRUE(mentions(of([](Layer& l) {
                         l.weight_bits = 2;
                         l.weights[5] = 4;
                       }),
                       {"beyond 3"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weight_scales.resize(2, 1.0f); }), {"weight scales"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weight_scales[0] = std::nanf(""); }), {"nan"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weight_zero_points[0] = 256; }), {"zero point 256"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.weight_zero_points.push_back(1); }), {"as many zero points"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.multipliers.clear(); }), {"as many zero points"}));
  EXPECT_TRUE(mentions(of([](Layer& l) { l.bias.pop_back(); }), {"2 biases for 3"}));
  for (const std::int32_t bad : {1, -1, (1 << 30) - 1, INT32_MIN})
    EXPECT_TRUE(mentions(of([&](Layer& l) { l.multipliers[0].mantissa = bad; }), {"mantissa", std::to_string(bad)}));
  for (const std::int32_t bad : {0, -1, 63, INT32_MAX})
    EXPECT_TRUE(mentions(of([&](Layer& l) { l.multipliers[0].shift = bad; }), {"shift", std::to_string(bad)}));
}

TEST(ModelCheck, SumsFitThirtyTwoBits) {
  const auto with_bias = [](std::int32_t bias) {
    return complaint(convolution(), [&](Model& model) { last<Layer>(model).bias[2] = bias; });
  };
  EXPECT_TRUE(mentions(with_bias(INT32_MAX), {"channel 2", "32 bits"}));
  EXPECT_TRUE(mentions(with_bias(INT32_MIN), {"channel 2", "32 bits"}));
  EXPECT_EQ(with_bias(1 << 30), "");
  // The largest sum of 255 * 255 for each of the inputs just fits, one input more does not.
  const auto with_inputs = [](std::int64_t count) {
    RandomModel net(3, {count}, {.only_bits = 8});
    net.fully_connected(1);
    return complaint(net, [](Model& model) {
      model.tensors[0].grid.zero_point = 0;
      auto& layer = last<Layer>(model);
      std::ranges::fill(layer.weights, std::uint8_t{255});
      layer.weight_zero_points[0] = 0;
      layer.bias[0] = 0;
    });
  };
  EXPECT_EQ(with_inputs(33025), "");
  EXPECT_TRUE(mentions(with_inputs(33026), {"2147515650"}));
}

TEST(ModelCheck, WindowsStayInsideTheirPadding) {
  const auto of = [](const std::function<void(WindowAxis&)>& spoil) {
    return complaint(convolution(), [&](Model& model) { spoil(last<Layer>(model).window.columns); });
  };
  EXPECT_TRUE(mentions(of([](auto& axis) { axis.stride = 65536; }), {"reaches to"}));
  EXPECT_TRUE(mentions(of([](auto& axis) { axis.pad_before = -1; }), {"padding"}));
  EXPECT_TRUE(mentions(of([](auto& axis) { axis.input = 5; }), {"window"}));
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{65537}, INT64_MAX, INT64_MIN}) {
    EXPECT_TRUE(mentions(of([&](auto& axis) { axis.stride = bad; }), {"extents"})) << bad;
    EXPECT_TRUE(mentions(of([&](auto& axis) { axis.dilation = bad; }), {"extents"})) << bad;
    EXPECT_TRUE(mentions(of([&](auto& axis) { axis.window = bad; }), {"extents"})) << bad;
    EXPECT_TRUE(mentions(of([&](auto& axis) { axis.output = bad; }), {"extents"})) << bad;
  }
}

RandomModel max_pool() {
  RandomModel net(5, {4, 4, 2});
  net.max_pool();
  return net;
}

TEST(ModelCheck, NoWindowLiesOnPaddingAlone) {
  const auto of = [](const WindowAxis& rows, std::int64_t output_rows) {
    return complaint(max_pool(), [&](Model& model) {
      auto& window = last<MaxPool>(model).window;
      window.rows = rows;
      window.columns = {.input = 4, .output = 4};
      model.tensors[1].shape = {output_rows, 4, 2};
    });
  };
  EXPECT_EQ(of({.input = 4, .window = 3, .output = 4, .pad_before = 1, .pad_after = 1}, 4), "");
  EXPECT_TRUE(mentions(of({.input = 4, .window = 2, .output = 7, .pad_before = 2, .pad_after = 2}, 7), {"alone"}));
  EXPECT_TRUE(mentions(of({.input = 4, .output = 5, .pad_after = 1}, 5), {"alone"}));
  // Taps that step over the image.
  EXPECT_TRUE(mentions(of({.input = 4, .window = 2, .dilation = 8, .output = 1, .pad_before = 3, .pad_after = 2}, 1),
                       {"alone"}));
  EXPECT_EQ(of({.input = 4, .window = 2, .dilation = 8, .output = 1, .pad_before = 5, .pad_after = 2}, 1), "");
}

TEST(ModelCheck, HugeWindowsAreCheckedAtOnce) {
  Model model = max_pool().finish();
  const WindowAxis axis{.input = 1, .window = 65536, .output = 65536, .pad_before = 65535, .pad_after = 65535};
  last<MaxPool>(model).window = {.rows = axis, .columns = {}};
  model.tensors[0].shape = {1, 1, 2};
  model.tensors[1].shape = {65536, 1, 2};
  for (int copy = 0; copy < 200; ++copy) EXPECT_NO_THROW(model.check());
}

TEST(ModelCheck, OutputsTooLargeForAShapeNameTheOperation) {
  EXPECT_TRUE(mentions(
      complaint(max_pool(),
                [](Model& model) {
                  auto& window = last<MaxPool>(model).window;
                  for (auto* axis : {&window.rows, &window.columns})
                    *axis = {.input = 4, .window = 65535, .output = 65536, .pad_before = 65534, .pad_after = 65534};
                }),
      {"MaxPool_0", "elements"}));
  RandomModel net(1, {4, 4, 2});
  net.pad();
  EXPECT_TRUE(mentions(complaint(net,
                                 [](Model& model) {
                                   for (auto& pair : last<Pad>(model).paddings) pair = {65536, 65536};
                                 }),
                       {"Pad_0", "elements"}));
}

TEST(ModelCheck, SumsOfPoolsFitThirtyTwoBits) {
  RandomModel net(2, {4096, 2057, 1}, {.only_bits = 8});
  net.mean();
  Model model = net.finish();
  model.tensors[0].grid.zero_point = 0;
  EXPECT_TRUE(mentions(error_of([&] { model.check(); }), {"AveragePool", "32 bits"}));
  model.tensors[0].grid.zero_point = 128;
  EXPECT_NO_THROW(model.check());
}

TEST(ModelCheck, OtherOperations) {
  RandomModel add(4, {3, 3, 2});
  add.add(0, 0);
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { last<Add>(m).multipliers.shift = 32; }), {"Add_0", "32"}));
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { last<Add>(m).multipliers.mantissas[1] = -1; }), {"-1"}));
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { last<Add>(m).multipliers.mantissas[0] = (1 << 21) + 1; }),
                       {"2097153", "2^21"}));
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { last<Add>(m).multipliers.mantissas.pop_back(); }), {"two"}));
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { m.tensors[1].shape = {3, 2, 3}; }), {"one shape"}));
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { m.operations[0].clamp = {.min = 9, .max = 3}; }), {"clamp"}));
  EXPECT_TRUE(mentions(complaint(add, [](Model& m) { m.operations[0].clamp.max = 256; }), {"clamp"}));

  RandomModel concat(4, {3, 3, 2});
  concat.concat(0, 0);
  for (const int bad : {-1, 3, INT32_MAX})
    EXPECT_TRUE(mentions(complaint(concat, [&](Model& m) { last<Concat>(m).axis = bad; }), {"along axis"})) << bad;
  EXPECT_TRUE(mentions(complaint(concat, [](Model& m) { last<Concat>(m).axis = 1; }), {"joins"}));
  EXPECT_TRUE(mentions(complaint(concat, [](Model& m) { m.tensors[1].shape = {3, 3, 5}; }), {"4 in all"}));
  EXPECT_TRUE(mentions(complaint(concat, [](Model& m) { m.operations[0].inputs.pop_back(); }), {"one multiplier"}));

  RandomModel reshape(4, {3, 3, 2});
  reshape.reshape({18});
  EXPECT_TRUE(mentions(complaint(reshape, [](Model& m) { m.tensors[1].shape = {17}; }), {"makes [17]"}));
  EXPECT_TRUE(mentions(complaint(reshape, [](Model& m) { m.tensors[1].grid.scale *= 2; }), {"keeps its input's"}));

  RandomModel pad(4, {3, 3, 2});
  pad.pad();
  EXPECT_TRUE(mentions(complaint(pad, [](Model& m) { last<Pad>(m).paddings[0][0] = INT64_MAX; }), {"padding"}));
  EXPECT_TRUE(mentions(complaint(pad, [](Model& m) { last<Pad>(m).paddings[0][0] = -1; }), {"padding"}));
  EXPECT_TRUE(mentions(complaint(pad, [](Model& m) { last<Pad>(m).paddings.pop_back(); }), {"one pair"}));

  RandomModel slice(4, {3, 3, 2});
  slice.slice();
  EXPECT_TRUE(mentions(complaint(slice, [](Model& m) { last<Slice>(m).starts[0] = 3; }), {"Slice_0", "begins at 3"}));
  EXPECT_TRUE(mentions(complaint(slice, [](Model& m) { last<Slice>(m).starts[0] = -1; }), {"begins at -1"}));
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{65537}, INT64_MAX})
    EXPECT_TRUE(mentions(complaint(slice, [&](Model& m) { last<Slice>(m).steps[1] = bad; }), {"a step of"})) << bad;
  EXPECT_TRUE(mentions(complaint(slice, [](Model& m) { last<Slice>(m).steps.pop_back(); }), {"one step"}));
  EXPECT_TRUE(mentions(complaint(slice, [](Model& m) { m.tensors[1].shape = {4, 1, 1}; }), {"keeps less"}));
  EXPECT_TRUE(mentions(complaint(slice, [](Model& m) { m.tensors[1].shape = {1}; }), {"makes [1]"}));
  EXPECT_TRUE(mentions(complaint(slice, [](Model& m) { m.tensors[1].grid.scale *= 2; }), {"keeps its input's"}));

  RandomModel pool(4, {3, 3, 2});
  pool.average_pool();
  EXPECT_TRUE(mentions(complaint(pool, [](Model& m) { last<AveragePool>(m).multipliers.emplace_back(); }), {"pixels"}));
}

}  // namespace
}  // namespace miniqat::integer::model_check_test
