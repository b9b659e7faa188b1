#include "core/graph/graph_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/attribute_json.h"
#include "core/graph/op.h"
#include "core/graph/registry.h"
#include "core/graph/source_ops.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "layers/activations.h"
#include "layers/layers.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/sanitized.h"
#include "tests/temp_dir.h"

namespace miniqat::graph_json_test {
namespace {

using testing::error_of;
using testing::is_sanitized;
using testing::mentions;

constexpr const char* kExample = R"({"format": "miniqat.graph", "version": 1,
 "nodes": [
  {"name": "inputs", "op": "Placeholder", "attrs": {"shape": [5, 128, 128, 3], "dtype": "float32"}},
  {"name": "test/weights", "op": "Variable", "attrs": {"shape": [5, 5, 3, 32], "trainable": true,
     "initializer": {"type": "truncated_normal", "stddev": 0.09}}},
  {"name": "test/Conv2D", "op": "Conv2D", "inputs": ["inputs", "test/weights"],
     "attrs": {"strides": [2, 2], "padding": "SAME", "dilations": [1, 1]}},
  {"name": "test/biases", "op": "Variable", "attrs": {"shape": [32], "initializer": {"type": "constant", "value": 0}}},
  {"name": "test/BiasAdd", "op": "BiasAdd", "inputs": ["test/Conv2D", "test/biases"]},
  {"name": "test/Relu6", "op": "Relu6", "inputs": ["test/BiasAdd"]}],
 "outputs": ["test/Relu6"]})";

/// A file with these nodes (the text between the brackets).
std::string file_of(const std::string& nodes, const std::string& outputs = "") {
  return R"({"format": "miniqat.graph", "version": 1, "nodes": [)" + nodes + R"(], "outputs": [)" + outputs + "]}";
}

const std::string kX = R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 3]}})";

std::string relu(const std::string& name, const std::string& input) {
  return R"({"name": ")" + name + R"(", "op": "Relu", "inputs": [")" + input + R"("]})";
}

std::string variable_with(const std::string& attributes) {
  return file_of(R"({"name": "v", "op": "Variable", "attrs": )" + attributes + "}");
}

class GraphJsonTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { layers::register_ops(); }

  static std::string error_for(const std::string& text) {
    return error_of([&] { graph_from_json(text, "G.json"); });
  }
  /// The error is one line that begins with the source and mentions `parts`.
  static void expect_refused(const std::string& text, std::vector<std::string> parts) {
    const std::string message = error_for(text);
    EXPECT_TRUE(message.starts_with("G.json: ")) << message;
    EXPECT_LT(message.size(), 600u);
    EXPECT_TRUE(mentions(message, parts)) << text.substr(0, 300);
  }
  static std::string rewritten(const std::string& text) { return graph_to_json(graph_from_json(text)); }
};

TEST_F(GraphJsonTest, ReadsTheDocumentedExample) {
  const Graph graph = graph_from_json(kExample);
  EXPECT_EQ(graph.at("test/Conv2D").output().shape(), Shape({5, 64, 64, 32}));
  ASSERT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(graph.outputs()[0].name(), "test/Relu6");
  const auto* weights = graph.at("test/weights").as<Variable>();
  ASSERT_NE(weights, nullptr);
  EXPECT_TRUE(weights->trainable);
  EXPECT_EQ(weights->initializer.kind, Initializer::Kind::kTruncatedNormal);
  EXPECT_EQ(weights->initializer.stddev, 0.09);
  graph.verify();
}

TEST_F(GraphJsonTest, WritesOneNodeALineWithoutCommonDefaults) {
  EXPECT_EQ(rewritten(kExample), R"({"format": "miniqat.graph", "version": 2,
 "nodes": [
  {"name": "inputs", "op": "Placeholder", "attrs": {"shape": [5, 128, 128, 3], "dtype": "float32"}},
  {"name": "test/weights", "op": "Variable", "attrs": {"shape": [5, 5, 3, 32], "initializer": {"type": "truncated_normal", "mean": 0, "stddev": 0.09}}},
  {"name": "test/Conv2D", "op": "Conv2D", "inputs": ["inputs", "test/weights"], "attrs": {"strides": [2, 2]}},
  {"name": "test/biases", "op": "Variable", "attrs": {"shape": [32], "initializer": {"type": "constant", "value": 0}}},
  {"name": "test/BiasAdd", "op": "BiasAdd", "inputs": ["test/Conv2D", "test/biases"]},
  {"name": "test/Relu6", "op": "Relu6", "inputs": ["test/BiasAdd"]}],
 "outputs": ["test/Relu6"]}
)");
}

TEST_F(GraphJsonTest, WhatWasWrittenReadsAsTheSame) {
  const std::string once = rewritten(kExample);
  EXPECT_EQ(rewritten(once), once);
  const std::string empty = graph_to_json(Graph());
  EXPECT_EQ(rewritten(empty), empty);
}

/// One op with every kind of attribute that a visitor knows.
struct AllKinds {
  bool flag = false;
  std::int64_t whole = 1;
  double real = 0.5;
  std::string text = "plain";
  std::vector<std::int64_t> list = {1};
  std::array<std::int64_t, 2> pair = {1, 1};
  std::vector<double> reals = {1};
  std::vector<std::array<std::int64_t, 2>> pairs;
  Initializer nested;

  void visit(AttributeVisitor& visitor) {
    visitor.field("flag", flag);
    visitor.field("whole", whole);
    visitor.field("real", real);
    visitor.field("text", text);
    visitor.field("list", list);
    visitor.field("pair", pair);
    visitor.field("reals", reals);
    visitor.field("pairs", pairs);
    visitor.begin("nested");
    nested.visit(visitor);
    visitor.end();
  }
};

struct AllKindsKind {
  static constexpr std::string_view kType = "AllKinds";
  using Attributes = AllKinds;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

class AllKindsOp final : public OpOf<AllKindsKind> {
 public:
  using OpOf::OpOf;
  std::vector<TensorSpec> infer(std::span<const TensorSpec>) const override { return {TensorSpec{}}; }
  void forward(const ForwardContext&) const override {}
  void reference_forward(const ForwardContext&) const override {}
};

std::shared_ptr<Op> AllKindsKind::make(const Attributes& attributes) {
  return std::make_shared<AllKindsOp>(attributes);
}

TEST_F(GraphJsonTest, EveryKindOfAttributeSurvives) {
  register_op<AllKindsKind>();
  const AllKinds written = {.flag = true,
                            .whole = std::numeric_limits<std::int64_t>::min(),
                            .real = 0.1 + 0.2,
                            .text = "quo\"te \\ \n \xc3\xa4",
                            .list = {},
                            .pair = {-3, std::numeric_limits<std::int64_t>::max()},
                            .reals = {1e300, -0.0, 5e-324, 1e15, 0.09},
                            .pairs = {{1, 2}, {3, 4}},
                            .nested = {.kind = Initializer::Kind::kTruncatedNormal, .mean = 1.5, .stddev = 0.25}};
  Graph graph;
  graph.add("all", AllKindsKind::make(written), {});
  graph.add("defaults", AllKindsKind::make(), {});
  const std::string text = graph_to_json(graph);
  EXPECT_NE(text.find(R"({"name": "defaults", "op": "AllKinds"})"), std::string::npos) << text;
  const Graph again = graph_from_json(text);
  const AllKinds& read = *again.at("all").as<AllKindsKind>();
  EXPECT_EQ(read.flag, written.flag);
  EXPECT_EQ(read.whole, written.whole);
  EXPECT_EQ(read.real, written.real);
  EXPECT_EQ(read.text, written.text);
  EXPECT_EQ(read.list, written.list);
  EXPECT_EQ(read.pair, written.pair);
  EXPECT_EQ(read.reals, written.reals);
  EXPECT_TRUE(std::signbit(read.reals[1]));
  EXPECT_EQ(read.pairs, written.pairs);
  EXPECT_EQ(read.nested.kind, written.nested.kind);
  EXPECT_EQ(read.nested.mean, written.nested.mean);
  EXPECT_EQ(read.nested.stddev, written.nested.stddev);
  EXPECT_EQ(graph_to_json(again), text);
}

TEST_F(GraphJsonTest, NumbersThatJsonCannotHoldAreRefusedWhenWriting) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Graph graph;
    constant(graph, "c", {}, {value});
    EXPECT_TRUE(mentions(error_of([&] { graph_to_json(graph); }), {"JSON cannot hold"}));
  }
}

TEST_F(GraphJsonTest, AConstantTakesANumberOrAList) {
  const Graph graph =
      graph_from_json(file_of(R"({"name": "a", "op": "Constant", "attrs": {"shape": [2], "value": 3}},)"
                              R"({"name": "b", "op": "Constant", "attrs": {"shape": [2], "value": [1, 2.5]}})"));
  EXPECT_EQ(graph.at("a").as<Constant>()->value, (std::vector<double>{3}));
  EXPECT_EQ(graph.at("b").as<Constant>()->value, (std::vector<double>{1, 2.5}));
  expect_refused(file_of(R"({"name": "c", "op": "Constant", "attrs": {"shape": [2], "value": [1, 2, 3]}})"),
                 {"[Constant \"c\"]", "[2]", "got 3"});
}

TEST_F(GraphJsonTest, NodesMayStandInAnyOrderAndKeepIt) {
  const std::string text = file_of(relu("c", "b") + "," + relu("b", "a") + "," + kX + "," + relu("a", "x"), R"("c")");
  const Graph graph = graph_from_json(text);
  std::vector<std::string> names;
  for (const Node* node : graph.nodes()) names.push_back(node->name());
  EXPECT_EQ(names, (std::vector<std::string>{"c", "b", "x", "a"}));
  EXPECT_EQ(graph.topological_order().front()->name(), "x");
  graph.verify();
  EXPECT_EQ(rewritten(graph_to_json(graph)), graph_to_json(graph));
}

TEST_F(GraphJsonTest, InputsAndOutputsMayNameAnOutput) {
  std::string nodes = R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [4, 3]}})";
  for (const std::string name : {"gamma", "beta", "mean", "variance"})
    nodes += R"(,{"name": ")" + name + R"(", "op": "Variable", "attrs": {"shape": [3]}})";
  nodes += R"(,{"name": "norm", "op": "BatchNorm", "inputs": ["x:0", "gamma", "beta", "mean", "variance"]},)";
  const Graph graph = graph_from_json(file_of(nodes + relu("r", "norm:2"), R"("norm:1", "r")"));
  EXPECT_EQ(graph.at("r").input(0), graph.at("norm").output(2));
  EXPECT_EQ(graph.at("norm").input(0).name(), "x");
  EXPECT_EQ(graph.outputs()[0].name(), "norm:1");
  EXPECT_NE(graph_to_json(graph).find(R"("inputs": ["norm:2"])"), std::string::npos);
  expect_refused(file_of(nodes + relu("r", "norm:3")), {"[Relu \"r\"]", "norm:3", "no output", "it has 3"});
  expect_refused(file_of(nodes + relu("r", "norm:x")), {"norm:x", "no output"});
  expect_refused(file_of(nodes + relu("r", "norm:99999999999999999999")), {"no output"});
}

TEST_F(GraphJsonTest, TextThatIsCutShortIsRefusedWithItsPlace) {
  const std::string text = kExample;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const std::string message = error_for(text.substr(0, length));
    ASSERT_TRUE(mentions(message, {"G.json: malformed JSON at line ", ", column "})) << "cut at " << length;
  }
}

TEST_F(GraphJsonTest, MalformedTextIsShownByLineAndColumn) {
  expect_refused("", {"line 1, column 1", "unexpected end of input"});
  expect_refused("{\"format\": \"miniqat.graph\",\n \"version\" 1}", {"line 2, column 12"});
  expect_refused("{\n\n  oops}", {"line 3, column 3"});
  expect_refused("{\"format\": \"\xff\"}", {"line 1, column 13"});
  expect_refused(std::string("\0\0\0\0", 4), {"line 1, column 1"});
  expect_refused("{} {}", {"line 1, column 4"});
  expect_refused("{\"a\": \"" + std::string(100000, 'x'), {"line 1"});
  expect_refused("{\"version\": 1e999}", {"line 1, column 17", "1e999"});
}

TEST_F(GraphJsonTest, DeepNestingIsRefused) {
  expect_refused(std::string(100000, '['), {"deeper than 64"});
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_refused(objects, {"deeper than 64"});
}

TEST_F(GraphJsonTest, NumbersThatFloat32CannotHoldAreRefused) {
  const auto constant = [](const std::string& attributes) {
    return file_of(R"({"name": "c", "op": "Constant", "attrs": )" + attributes + "}");
  };
  expect_refused(constant(R"({"shape": [], "value": 1e39})"), {"[Constant \"c\"] value", "float32", "1e+39"});
  expect_refused(constant(R"({"shape": [2], "value": [0, -1e39]})"), {"[Constant \"c\"] value", "-1e+39"});
  EXPECT_EQ(error_for(constant(R"({"shape": [], "value": 3.4e38})")), "");
}

TEST_F(GraphJsonTest, AVariableThatNoCheckpointCanHoldIsRefused) {
  const auto node = [](const std::string& op) {
    return file_of(R"({"name": "__metadata__", "op": ")" + op + R"(", "attrs": {"shape": [1]}})");
  };
  expect_refused(node("Variable"), {"[Variable \"__metadata__\"] needs another name",
                                    ".safetensors files keep \"__metadata__\" for remarks"});
  EXPECT_EQ(error_for(node("Placeholder")), "");
}

TEST_F(GraphJsonTest, ReadsAsManyNodesAsItWrites) {
  const int kNodes = is_sanitized() ? 6000 : testing::tries_all_cases() ? 30000 : 10000;
  Graph graph;
  Output last = placeholder(graph, "x", {1});
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = "block" + std::to_string(i) + "/biases";
    variable(graph, name, {1}, {});
    last = layers::relu(graph, "block" + std::to_string(i) + "/Relu", last);
  }
  placeholder(graph, std::string(100000, 'n'), {1});
  constant(graph, "c", {20000}, std::vector<double>(20000, 0.25));
  graph.set_outputs({last, graph.output_at("block7/biases")});
  const std::string text = graph_to_json(graph);
  EXPECT_EQ(rewritten(text), text);
}

TEST_F(GraphJsonTest, TheFrameOfTheFileIsChecked) {
  expect_refused("[]", {"must be a JSON object"});
  expect_refused("{}", {"\"format\" is missing"});
  expect_refused(R"({"format": "other", "version": 1, "nodes": []})", {"\"format\" is \"other\"", "miniqat.graph"});
  expect_refused(R"({"format": 1, "version": 1, "nodes": []})", {"\"format\" must be a string"});
  for (const std::string version : {"3", "0", "\"1\"", "null", "true", "1.5"})
    expect_refused(R"({"format": "miniqat.graph", "version": )" + version + R"(, "nodes": []})",
                   {"\"version\" is " + version, "versions 1 and 2"});
  expect_refused(R"({"format": "miniqat.graph", "nodes": []})", {"\"version\""});
  expect_refused(R"({"format": "miniqat.graph", "version": 1})", {"\"nodes\" is missing"});
  expect_refused(R"({"format": "miniqat.graph", "version": 1, "nodes": {}})", {"\"nodes\" must be a list"});
  expect_refused(R"({"format": "miniqat.graph", "version": 1, "nodes": [], "output": []})",
                 {"unknown key \"output\"", "did you mean \"outputs\"?"});
  expect_refused(R"({"format": "miniqat.graph", "version": 1, "nodes": [], "outputs": "x"})", {"\"outputs\""});
  expect_refused(file_of(kX, "5"), {"\"outputs\"", "5"});
  expect_refused(file_of(kX, "\"y\""), {"no node \"y\""});
}

TEST_F(GraphJsonTest, TheFrameOfANodeIsChecked) {
  expect_refused(file_of("5"), {"node 0", "must be an object", "5"});
  expect_refused(file_of(kX + ", []"), {"node 1", "must be an object"});
  expect_refused(file_of(R"({"op": "Relu"})"), {"node 0", "\"name\" is missing"});
  expect_refused(file_of(R"({"name": 7, "op": "Relu"})"), {"node 0", "\"name\" must be a string"});
  expect_refused(file_of(R"({"name": "r"})"), {"node 0 \"r\"", "\"op\" is missing"});
  expect_refused(file_of(R"({"name": "r", "op": "Relu7"})"), {"\"r\"", "unknown op \"Relu7\"", "Relu6"});
  expect_refused(file_of(R"({"name": "r", "op": "Relu", "input": ["x"]})"),
                 {"\"r\"", "unknown key \"input\"", "did you mean \"inputs\"?"});
  expect_refused(file_of(R"({"name": "r", "op": "Relu", "inputs": "x"})"), {"\"r\"", "\"inputs\" must be a list"});
  expect_refused(file_of(R"({"name": "r", "op": "Relu", "inputs": [["x"]]})"), {"\"r\"", "\"inputs\""});
  expect_refused(file_of(R"({"name": "r", "op": "Relu", "attrs": []})"), {"\"r\"", "attrs must be an object"});
  expect_refused(file_of(R"({"name": "r", "op": "Relu", "name": "s"})"), {"\"name\"", "twice"});
}

TEST_F(GraphJsonTest, NamesAreChecked) {
  expect_refused(file_of(kX + "," + kX), {"two nodes named \"x\""});
  for (const std::string name : {"", "a b", "a:0", "/a", "a,b"})
    expect_refused(file_of(kX + "," + relu(name, "x")), {"name"});
  expect_refused(file_of(kX + "," + relu("conv/Relu", "x") + "," + relu("r", "conv/Relv")),
                 {"[Relu \"r\"]", "conv/Relv", "no such node", "did you mean \"conv/Relu\"?"});
  expect_refused(file_of(relu("r", "")), {"[Relu \"r\"]", "no such node"});
}

TEST_F(GraphJsonTest, ACycleIsNamed) {
  expect_refused(file_of(relu("self", "self")), {"cycle", "\"self\""});
  // "behind" only hangs on the cycle of a and b.
  const std::string message = error_for(file_of(relu("behind", "a") + "," + relu("a", "b") + "," + relu("b", "a")));
  EXPECT_TRUE(mentions(message, {"cycle"}));
  EXPECT_EQ(message.find("behind"), std::string::npos) << message;
}

TEST_F(GraphJsonTest, AttributesAreChecked) {
  const auto refuse = [](const std::string& attributes, const std::vector<std::string>& parts) {
    std::vector<std::string> all = {"[Variable \"v\"]"};
    all.insert(all.end(), parts.begin(), parts.end());
    expect_refused(variable_with(attributes), all);
  };
  refuse(R"({"shap": [1]})", {"unknown attribute \"shap\"", "did you mean \"shape\"?"});
  refuse(R"({"shape": 5})", {"\"shape\"", "whole numbers", "got 5"});
  refuse(R"({"shape": ["5"]})", {"\"shape\"", "whole numbers"});
  refuse(R"({"shape": [2.5]})", {"\"shape\"", "2.5"});
  refuse(R"({"shape": [1e300]})", {"\"shape\"", "1e+300"});
  refuse(R"({"shape": [null]})", {"\"shape\"", "null"});
  refuse(R"({"shape": [9223372036854775808]})", {"\"shape\"", "9223372036854775808"});
  refuse(R"({"shape": [1], "trainable": 1})", {"\"trainable\"", "true or false"});
  refuse(R"({"shape": [1], "initializer": "zeros"})", {"\"initializer\"", "an object"});
  refuse(R"({"shape": [1], "initializer": {"type": "constan"}})", {"initializer.type", "\"constan\"", "constant"});
  refuse(R"({"shape": [1], "initializer": {"type": "constant", "value": "1"}})", {"initializer.value", "a number"});
  refuse(R"({"shape": [1], "initializer": {"type": "constant", "values": 1}})",
         {"unknown attribute \"initializer.values\"", "did you mean \"value\"?"});
  refuse(R"({"shape": [1], "initializer": {"type": "constant", "value": 1e300}})", {"initializer value", "finite"});
  refuse(R"({"shape": [1], "initializer": {"type": "truncated_normal", "stddev": -1}})", {"stddev", "-1"});
  expect_refused(variable_with(R"({"shape": [NaN]})"), {"malformed JSON"});
  for (const std::string type : {"int7", "int8"})
    expect_refused(
        file_of(R"({"name": "p", "op": "Placeholder", "attrs": {"shape": [1], "dtype": ")" + type + R"("}})"),
        {"[Placeholder \"p\"]", type});
}

// Nothing may be allocated for these, whether they are added up, multiplied or only compared.
TEST_F(GraphJsonTest, AbsurdShapesAreRefused) {
  for (const std::string shape : {"[1000000000000]", "[1000000, 1000000]", "[4294967296, 4294967296]",
                                  "[9223372036854775807, 9223372036854775807]", "[0, 9223372036854775807]"})
    expect_refused(variable_with(R"({"shape": )" + shape + "}"), {"[Variable \"v\"]", "more than 2147483648 elements"});
  expect_refused(variable_with(R"({"shape": [3, -2]})"), {"[Variable \"v\"]", "[3,-2]", "negative"});
  expect_refused(variable_with(R"({"shape": [1,1,1,1,1,1,1,1,1]})"), {"[Variable \"v\"]", "rank 9"});
}

TEST_F(GraphJsonTest, ShapesThatDoNotFitNameTheNode) {
  expect_refused(file_of(kX + R"(,{"name": "b", "op": "Variable", "attrs": {"shape": [4]}},)"
                              R"({"name": "add", "op": "BiasAdd", "inputs": ["x", "b"]})"),
                 {"[BiasAdd \"add\"]", "[2,3]", "[4]"});
  expect_refused(file_of(R"({"name": "r", "op": "Relu"})"), {"[Relu \"r\"]", "1 input"});
}

TEST_F(GraphJsonTest, ALongChainInReverseOrderIsRead) {
  std::string nodes;
  for (int i = 50000; i > 0; --i) nodes += relu(concat("n", i), i == 1 ? "x" : concat("n", i - 1)) + ",\n";
  EXPECT_EQ(graph_from_json(file_of(nodes + kX)).size(), 50001u);
}

TEST_F(GraphJsonTest, FilesAreWrittenAndReadBack) {
  const testing::TempDir dir;
  const Graph graph = graph_from_json(kExample);
  write_graph(dir.path() / "g.json", graph);
  EXPECT_EQ(graph_to_json(read_graph(dir.path() / "g.json")), graph_to_json(graph));
  const auto empty = dir.write("empty.json", "");
  EXPECT_TRUE(mentions(error_of([&] { read_graph(empty); }), {"empty.json", "end of input"}));
  EXPECT_TRUE(mentions(error_of([&] { read_graph(dir.path() / "none.json"); }), {"none.json"}));
}

}  // namespace
}  // namespace miniqat::graph_json_test
