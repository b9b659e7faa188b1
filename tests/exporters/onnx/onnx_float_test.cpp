// Float networks as ONNX, read back by the importer.

#include "exporters/onnx/onnx_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/engine/session.h"
#include "core/graph/registry.h"
#include "importers/onnx/import.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/op_roles.h"
#include "tests/errors.h"
#include "tests/runtimes/float_networks.h"
#include "tests/temp_dir.h"

namespace miniqat::exporters::onnx_float_test {
namespace {

using testing::error_of;
using testing::FloatNetwork;
using testing::mentions;

/// The network through a file.
importers::ImportedModel round_trip(const FloatNetwork& network) {
  const testing::TempDir place;
  const auto path = place.write("net.onnx", onnx_float(network.graph, network.variables));
  return importers::import_onnx(path, {.batch_size = network.batch()});
}

TEST(OnnxFloat, NetworksComeBackAsTheyWere) {
  for (const char* name : {"lenet5", "lenet_bn", "resnet20", "resnet8", "ds_cnn", "autoencoder", "mobilenet_v2"}) {
    FloatNetwork network = testing::float_model(name);
    importers::ImportedModel back = round_trip(network);
    ASSERT_EQ(back.variables.size(), network.variables.size()) << name;
    for (const auto& [variable, value] : network.variables) {
      // The importer has a name of its own for filters of depthwise convolutions.
      if (variable.ends_with("depthwise/weights")) continue;
      ASSERT_TRUE(back.variables.contains(variable)) << name << ": " << variable;
      EXPECT_TRUE(std::ranges::equal(back.variables.at(variable).values<float>(), value.values<float>())) << variable;
    }
    FloatNetwork read{std::move(back.graph), std::move(back.variables)};
    EXPECT_EQ(testing::relative_difference(network.results(), read.results()), 0) << name;
  }
}

TEST(OnnxFloat, RandomNetworksComputeTheSame) {
  std::vector<FloatNetwork> networks = testing::random_float_networks(60);
  for (FloatNetwork& chain : testing::random_float_chains(60)) networks.push_back(std::move(chain));
  for (FloatNetwork& network : networks) {
    importers::ImportedModel back = round_trip(network);
    FloatNetwork read{std::move(back.graph), std::move(back.variables)};
    // The importer leaves a final Softmax out.
    const Node& last = *network.graph.outputs()[0].node;
    if (last.as<layers::Softmax>() != nullptr) network.graph.set_outputs({last.input(0)});
    EXPECT_LE(testing::relative_difference(network.results(), read.results()), 1e-5) << network.name;
  }
}

/// Rows of series, and images of one channel: the file has no Transpose that says where the steps are.
TEST(OnnxFloat, SeriesComeBackAsTheyWere) {
  for (const std::int64_t channels : {1, 2}) {
    for (const bool as_images : {false, true}) {
      Graph graph;
      const Output x = layers::placeholder(graph, "x", {2, 6, channels});
      Output y;
      if (as_images) {
        const Output image = layers::reshape(graph, "image", x, {.shape = {2, 6, channels, 1}});
        const Output filter = layers::variable(graph, "c/weights", {3, 1, 1, 4});
        y = layers::mean(graph, "mean", layers::conv2d(graph, "c/Conv2D", image, filter), {.axes = {1, 2}});
      } else {
        y = layers::reshape(graph, "flat", x, {.shape = {2, 6 * channels}});
      }
      y = layers::matmul(graph, "d/MatMul", y, layers::variable(graph, "d/weights", {y.shape()[1], 3}));
      graph.set_outputs({y});
      FloatNetwork network = testing::with_random_variables(std::move(graph), 5);
      importers::ImportedModel back = round_trip(network);
      FloatNetwork read{std::move(back.graph), std::move(back.variables)};
      EXPECT_EQ(read.input().shape(), network.input().shape()) << channels << " " << as_images;
      EXPECT_EQ(testing::relative_difference(network.results(), read.results()), 0) << channels << " " << as_images;
    }
  }
}

/// Images on the way: their axes lie in another order in the file, and their numbers before a Reshape.
TEST(OnnxFloat, EveryOpThatItWritesComesBack) {
  for (FloatNetwork& network : testing::single_ops()) {
    importers::ImportedModel back = round_trip(network);
    FloatNetwork read{std::move(back.graph), std::move(back.variables)};
    EXPECT_LE(testing::relative_difference(network.results(), read.results()), 1e-6) << network.name;
  }
}

/// Elementwise functions that are tables among integers but that the file of a float network does not hold, and why.
const std::map<std::string_view, std::string> kRefusedFunctions = {};

TEST(OnnxFloat, HoldsTheFunctionsThatAreTablesAmongIntegers) {
  layers::register_ops();
  const auto functions = quantize::types_with(quantize::OpRole::kTable);
  ASSERT_FALSE(functions.empty());
  for (const std::string_view type : functions) {
    Graph graph;
    const Output x = layers::placeholder(graph, "x", {2, 4, 2, 3});
    graph.set_outputs({graph.add("f", make_op(type), {x}).output()});
    const std::string error = error_of([&] { onnx_float(graph, {}); });
    EXPECT_EQ(error.empty(), !kRefusedFunctions.contains(type)) << type << ": " << error;
  }
}

TEST(OnnxFloat, RefusesByNameWhatItDoesNotHold) {
  const auto refusal = [](const std::function<Output(Graph&, Output)>& build) {
    Graph graph;
    const Output x = layers::placeholder(graph, "x", {2, 4, 2, 3});
    graph.set_outputs({build(graph, x)});
    return error_of([&] { onnx_float(graph, {{"w", Tensor(Shape{3})}}); });
  };
  EXPECT_TRUE(mentions(refusal([](Graph& g, Output x) { return layers::square(g, "sq", x); }),
                       {"onnx-float", "[Square \"sq\"]", "no counterpart"}));
  EXPECT_TRUE(mentions(refusal([](Graph& g, Output x) { return layers::mean(g, "m", x, {.axes = {3}}); }),
                       {"[Mean \"m\"]", "other axes"}));
  EXPECT_TRUE(mentions(refusal([](Graph& g, Output x) {
                         return layers::reshape(g, "r", x, {.shape = {4, -1}});
                       }),
                       {"[Reshape \"r\"]", "batch of 2"}));
  EXPECT_TRUE(mentions(
      refusal([](Graph& g, Output x) { return layers::bias_add(g, "b", x, layers::variable(g, "none", {3})); }),
      {"[Variable \"none\"]", "no value"}));
  EXPECT_TRUE(mentions(refusal([](Graph& g, Output x) {
                         const Output w = layers::variable(g, "w", {3});
                         return layers::bias_add(g, "b", x, layers::relu(g, "computed", w));
                       }),
                       {"[BiasAdd \"b\"]", "computes", "[Relu \"computed\"]"}));
  EXPECT_TRUE(mentions(refusal([](Graph& g, Output x) {
                         return layers::add(g, "a", layers::mean(g, "m", x, {.axes = {1, 2}}), x);
                       }),
                       {"[Add \"a\"]", "[2,3] and [2,4,2,3]"}));
  EXPECT_TRUE(mentions(refusal([](Graph& g, Output x) { return quantize::fake_quant(g, "q", x, {}); }),
                       {"[FakeQuant \"q\"]", "no counterpart"}));
}

}  // namespace
}  // namespace miniqat::exporters::onnx_float_test
