// The opset and the IR version of ONNX files: the lowest that hold the content, or those asked for.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/text/error.h"
#include "exporters/onnx/graph.h"
#include "exporters/onnx/onnx.h"
#include "exporters/onnx/onnx_float.h"
#include "formats/onnx/onnx.pb.h"
#include "importers/onnx/import.h"
#include "layers/layers.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/float_networks.h"
#include "tests/temp_dir.h"

namespace miniqat::exporters::opset_test {
namespace {

using integer::Model;
using testing::error_of;
using testing::FloatNetwork;
using testing::mentions;
using testing::RandomModel;

TEST(OnnxGraph, AFileIsNotLargerThanItsFormatHolds) {
  OnnxGraph graph("net", {});
  graph.integers("sizes", {1, 2, 3});
  const std::size_t size = graph.bytes().size();
  EXPECT_EQ(graph.bytes(size).size(), size);
  EXPECT_TRUE(mentions(error_of([&] { graph.bytes(size - 1); }), {"onnx: ", "2 GiB"}));
}

/// ONNX's own table, docs/Versioning.md.
const std::map<std::int64_t, std::int64_t> kIrVersions = {{13, 7}, {14, 7}, {15, 8}, {16, 8}, {17, 8},
                                                          {18, 8}, {19, 9}, {20, 9}, {21, 10}};

pb::Model parsed(const std::string& bytes) {
  pb::Model model;
  if (!model.ParseFromString(bytes)) throw std::runtime_error("not a protobuf message");
  return model;
}

/// Of the file, whose IR version goes with it.
std::int64_t opset_of(const std::string& bytes) {
  const pb::Model model = parsed(bytes);
  EXPECT_EQ(model.opset_import().size(), 1);
  const std::int64_t opset = model.opset_import(0).version();
  EXPECT_EQ(model.ir_version(), kIrVersions.at(opset)) << "opset " << opset;
  return opset;
}

std::vector<const pb::Node*> nodes_of(const pb::Model& model, const std::string& type) {
  std::vector<const pb::Node*> nodes;
  for (const pb::Node& node : model.graph().node())
    if (node.op_type() == type) nodes.push_back(&node);
  return nodes;
}

Model layers_of(int bits) {
  RandomModel net(1, {5, 4, 3}, {.only_bits = bits});
  net.conv2d(4), net.depthwise_conv2d(), net.max_pool(), net.fully_connected(3);
  return net.finish();
}

Model function_of(const std::string& name) {
  RandomModel net(1, {5, 4, 3});
  net.lookup(name, [](double x) { return x; }, {.scale = 0.1f, .zero_point = 20});
  return net.finish();
}

TEST(OnnxOpset, IsTheLowestThatHoldsTheIntegers) {
  EXPECT_EQ(opset_of(onnx(layers_of(8))), 13);
  EXPECT_EQ(opset_of(onnx(layers_of(5))), 13);
  for (const int bits : {2, 3, 4}) {
    EXPECT_EQ(opset_of(onnx(layers_of(bits))), 21) << "INT4";
    EXPECT_EQ(opset_of(onnx(layers_of(bits), {.packed_4_bits = false})), 13);
  }
  EXPECT_EQ(opset_of(onnx(function_of("Sigmoid"))), 13);
  EXPECT_EQ(opset_of(onnx(function_of("HardSwish"))), 14);
  EXPECT_EQ(opset_of(onnx(function_of("LeakyRelu"))), 13) << "a table";
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(opset_of(onnx(testing::random_network(seed), {.packed_4_bits = false})), 13) << seed;
}

TEST(OnnxOpset, IsTheLowestThatHoldsTheFloatNetwork) {
  for (const FloatNetwork& network : testing::single_ops()) {
    const std::string bytes = onnx_float(network.graph, network.variables);
    EXPECT_EQ(opset_of(bytes), nodes_of(parsed(bytes), "HardSwish").empty() ? 13 : 14) << network.name;
  }
}

TEST(OnnxOpset, MayBeAskedFor) {
  const FloatNetwork lenet = testing::float_model("lenet5");
  for (std::int64_t opset = kOldestOpset; opset <= kNewestOpset; ++opset) {
    EXPECT_EQ(opset_of(onnx(layers_of(8), {.opset = opset})), opset);
    EXPECT_EQ(opset_of(onnx_float(lenet.graph, lenet.variables, {.opset = opset})), opset);
  }
}

TEST(OnnxOpset, OneThatTheContentDoesNotFitIsRefusedWithTheContent) {
  EXPECT_TRUE(mentions(error_of([] { onnx(layers_of(4), {.opset = 20}); }),
                       {"onnx: [Conv2D \"", "weights of 4 bits", "--8-bit-weights", "takes opset 21", "opset 20"}));
  Graph graph;
  graph.set_outputs({layers::hard_swish(graph, "swish", layers::placeholder(graph, "x", {2, 4, 2, 3}))});
  EXPECT_TRUE(mentions(error_of([&] { onnx_float(graph, {}, {.opset = 13}); }),
                       {"onnx-float: [HardSwish \"swish\"]", "takes opset 14", "opset 13"}));
  for (const std::int64_t opset : {0, 12, 22}) {
    EXPECT_TRUE(mentions(error_of([&] { onnx(layers_of(8), {.opset = opset}); }),
                         {concat("opset ", opset, " cannot be written"), "13 to 21"}));
    EXPECT_TRUE(mentions(error_of([&] { onnx_float(graph, {}, {.opset = opset}); }), {"13 to 21"}));
  }
}

/// Its integers are there in any case.
TEST(OnnxOpset, AHardSwishAmongIntegersIsATableBeforeItsOperator) {
  const pb::Model old = parsed(onnx(function_of("HardSwish"), {.opset = 13}));
  EXPECT_EQ(nodes_of(old, "HardSwish").size(), 0u);
  EXPECT_EQ(nodes_of(old, "Gather").size(), 1u);
  EXPECT_EQ(nodes_of(parsed(onnx(function_of("HardSwish"))), "HardSwish").size(), 1u);
}

TEST(OnnxOpset, AxesOfAMeanAreAnAttributeOrAnInput) {
  Graph graph;
  graph.set_outputs({layers::mean(graph, "m", layers::placeholder(graph, "x", {2, 4, 2, 3}), {.axes = {1, 2}})});
  for (const std::int64_t opset : {13, 17, 18, 21}) {
    const pb::Model model = parsed(onnx_float(graph, {}, {.opset = opset}));
    const pb::Node& mean = *nodes_of(model, "ReduceMean").at(0);
    const bool as_attribute = std::ranges::any_of(
        mean.attribute(), [](const pb::Attribute& attribute) { return attribute.name() == "axes"; });
    EXPECT_EQ(as_attribute, opset < 18) << opset;
    EXPECT_EQ(mean.input().size(), opset < 18 ? 1 : 2) << opset;
  }
}

TEST(OnnxOpset, EveryOneIsReadBackAsTheSameNetwork) {
  const testing::TempDir place;
  for (FloatNetwork& network : testing::single_ops())
    for (std::int64_t opset = 14; opset <= kNewestOpset; ++opset) {
      const auto path = place.write("net.onnx", onnx_float(network.graph, network.variables, {.opset = opset}));
      importers::ImportedModel back = importers::import_onnx(path, {.batch_size = network.batch()});
      FloatNetwork read{std::move(back.graph), std::move(back.variables)};
      EXPECT_LE(testing::relative_difference(network.results(), read.results()), 1e-6)
          << network.name << ", opset " << opset;
    }
}

}  // namespace
}  // namespace miniqat::exporters::opset_test
