// `miniqat inspect --dot` and `--diff`: what the picture and the comparison say of a graph.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::inspect_test {
namespace {

namespace fs = std::filesystem;

/// A graph file with these nodes, given as JSON objects.
std::string graph_text(const std::string& nodes, const std::string& outputs = "") {
  return R"({"format": "miniqat.graph", "version": 1, "nodes": [)" + nodes + R"(], "outputs": [)" + outputs + "]}";
}

/// A FakeQuant of `x` and the two variables of its range, as graph JSON.
std::string quantizer(const std::string& name, const std::string& x, const std::string& attributes) {
  const auto variable = [&](const std::string& end) {
    return R"({"name": ")" + name + end + R"(", "op": "Variable", "attrs": {"shape": [], "trainable": false}}, )";
  };
  return variable("/min") + variable("/max") + R"({"name": ")" + name + R"(", "op": "FakeQuant", "inputs": [")" + x +
         R"(", ")" + name + R"(/min", ")" + name + R"(/max"], "attrs": {)" + attributes + "}}";
}

/// The first line with `head`, or "" when there is none.
std::string line_with(const std::string& text, const std::string& head) {
  const std::size_t place = text.find(head);
  if (place == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', place) + 1;
  return text.substr(begin, text.find('\n', place) - begin);
}

class InspectTest : public ProgramTest {
 protected:
  /// Writes lenet5 as float.json and, rewritten for training, as train.json.
  void write_lenet5() const {
    expect_success(program("models --model lenet5 --batch-size 2 --out float.json"));
    expect_success(program("rewrite --graph float.json --weight-bits 4 --symmetric --out train.json"));
  }

  std::string dot_of(const std::string& graph) const {
    return expect_success(program({"inspect", graph, "--dot", "-"})).out;
  }

  std::string diff(const std::string& before, const std::string& after) const {
    return expect_success(program({"inspect", "--diff", before, after})).out;
  }

  /// What Graphviz makes of the text as SVG; "" when it is not installed.
  std::string drawn(const std::string& dot) const {
    if (std::system("dot -V >/dev/null 2>&1") != 0) return "";
    place_.write("picture.dot", dot);
    const std::string place = place_.path().string() + "/";
    const std::string command =
        "dot -Tsvg '" + place + "picture.dot' -o '" + place + "picture.svg' 2>'" + place + "dot.err'";
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(bytes_of(path("dot.err")), "");
    return bytes_of(path("picture.svg"));
  }
};

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

void expect_none(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_EQ(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

TEST_F(InspectTest, PicturesTellQuantizersApart) {
  write_lenet5();
  const std::string dot = dot_of("train.json");
  expect_parts(dot,
               {"label=\"weights_quant\\n4 bits, last value\\nsymmetric, narrow\", shape=box, fillcolor=\"#ffb870\"",
                "label=\"act_quant\\n8 bits, moving average\\nsymmetric\", shape=box, fillcolor=\"#ffe58a\"",
                "weight quantizer", "activation quantizer", "subgraph \"cluster_conv1\"", "label=\"conv1\"",
                "\"conv1/weights\" -> \"conv1/weights_quant\"", "\"conv1/Relu\" -> \"conv1/act_quant\""});
  expect_none(dot, {"_quant/min", "_quant/max", "input quantizer", "fixed-range quantizer"});
  expect_text(line_with(dot, "\"fc3/act_quant\" ["), {"penwidth"});
  EXPECT_EQ(line_with(dot, "\"fc2/act_quant\" [").find("penwidth"), std::string::npos) << dot;
  expect_none(dot_of("float.json"), {"quantizer"});
}

TEST_F(InspectTest, RolesFollowFromStructure) {
  const std::string x = R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 3]}}, )";
  const std::string w = R"({"name": "w", "op": "Variable", "attrs": {"shape": [12]}}, )";
  place_.write("roles.json",
               graph_text(x + w + R"({"name": "copy", "op": "Identity", "inputs": ["x"]}, )" +
                          quantizer("in", "copy", R"("range": "moving_average")") + ", " +
                          quantizer("first", "w", R"("range": "last_value")") + ", " +
                          R"({"name": "shaped", "op": "Reshape", "inputs": ["first"], "attrs": {"shape": [3, 4]}}, )" +
                          R"({"name": "product", "op": "MatMul", "inputs": ["in", "shaped"]}, )" +
                          quantizer("out", "product", R"("range": "last_value")") + ", " +
                          quantizer("still", "out", R"("range": "fixed", "bits": 2)")));
  const std::string dot = dot_of("roles.json");
  expect_text(line_with(dot, "\"first\" ["), {"#ffb870"});
  expect_text(line_with(dot, "\"in\" ["), {"#e2c6f0"});
  expect_text(line_with(dot, "\"out\" ["), {"#ffe58a"});
  expect_text(line_with(dot, "\"still\" ["), {"#e0d2c2"});
  expect_parts(dot, {"2 bits, fixed range", "input quantizer", "fixed-range quantizer"});
}

TEST_F(InspectTest, BatchNormsShowWhatIsTrainedOnly) {
  const auto vector = [](const std::string& name, bool trainable) {
    return R"({"name": "bn/)" + name + R"(", "op": "Variable", "attrs": {"shape": [3], "trainable": )" +
           (trainable ? "true" : "false") + "}}, ";
  };
  place_.write("bn.json", graph_text(R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 3]}}, )" +
                                     vector("gamma", true) + vector("beta", true) + vector("moving_mean", false) +
                                     vector("moving_variance", false) + vector("frozen_bias", false) +
                                     R"({"name": "bn/BatchNorm", "op": "BatchNorm",
                     "inputs": ["x", "bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance"]},
                    {"name": "bn/mean_out", "op": "Identity", "inputs": ["bn/BatchNorm:1"]},
                    {"name": "bn/BiasAdd", "op": "BiasAdd", "inputs": ["bn/BatchNorm", "bn/frozen_bias"]})"));
  const std::string dot = dot_of("bn.json");
  expect_parts(dot, {"\"bn/gamma\" -> \"bn/BatchNorm\"", "\"bn/beta\" -> \"bn/BatchNorm\"",
                     "\"bn/frozen_bias\" -> \"bn/BiasAdd\""});
  expect_none(dot, {"moving_mean", "moving_variance"});
  expect_text(line_with(dot, "-> \"bn/mean_out\""), {"label=\" :1\""});
  EXPECT_EQ(line_with(dot, "-> \"bn/BiasAdd\"").find("label"), std::string::npos) << dot;
}

TEST_F(InspectTest, RangesAreShownWhereTheyAreTrained) {
  place_.write("ranges.json", graph_text(R"(
      {"name": "w", "op": "Variable", "attrs": {"shape": [1, 1, 2, 3]}},
      {"name": "depthwise/min", "op": "Variable", "attrs": {"shape": [2, 3], "trainable": false}},
      {"name": "depthwise/max", "op": "Variable", "attrs": {"shape": [2, 3], "trainable": false}},
      {"name": "depthwise", "op": "FakeQuant", "inputs": ["w", "depthwise/min", "depthwise/max"],
       "attrs": {"per_channel": true}},
      {"name": "still/min", "op": "Constant", "attrs": {"shape": [], "value": -1}},
      {"name": "still/max", "op": "Variable", "attrs": {"shape": [], "trainable": true}},
      {"name": "still", "op": "FakeQuant", "inputs": ["depthwise", "still/min", "still/max"],
       "attrs": {"range": "fixed"}})"));
  const std::string dot = dot_of("ranges.json");
  expect_parts(dot, {"\\n8 bits, moving average\\nper channel\"", "\"still/max\" -> \"still\""});
  expect_none(dot, {"depthwise/min", "depthwise/max", "still/min"});
}

TEST_F(InspectTest, ScopesAreNestedClusters) {
  place_.write("scopes.json", graph_text(R"({"name": "a/b/x", "op": "Placeholder", "attrs": {"shape": [2]}},
                             {"name": "a/b", "op": "Relu", "inputs": ["a/b/x"]},
                             {"name": "a/c/y", "op": "Relu6", "inputs": ["a/b"]})",
                                         "\"a/c/y\""));
  const std::string dot = dot_of("scopes.json");
  const std::size_t outer = dot.find("  subgraph \"cluster_a\" {");
  const std::size_t inner = dot.find("    subgraph \"cluster_a/b\" {");
  const std::size_t sibling = dot.find("    subgraph \"cluster_a/c\" {");
  ASSERT_NE(outer, std::string::npos) << dot;
  EXPECT_LT(outer, inner);
  EXPECT_LT(inner, sibling);
  expect_parts(dot, {"label=\"y\\nRelu6\"", "label=\"b\\nRelu\"", "      \"a/b/x\" ["});
  const std::string svg = drawn(dot);
  if (svg.empty()) GTEST_SKIP() << "Graphviz is not installed";
  expect_parts(svg, {"<title>cluster_a/b</title>", "<title>a/c/y</title>"});
}

TEST_F(InspectTest, NamesWithGraphvizSyntaxAreDrawnAsTheyAre) {
  place_.write("odd.json", graph_text(R"({"name": "s\\/x\\N", "op": "Placeholder", "attrs": {"shape": [2]}},
                             {"name": "s\\/{<i>&lt;|];}\\", "op": "Relu", "inputs": ["s\\/x\\N"]},
                             {"name": "s\\//->", "op": "Relu", "inputs": ["s\\/{<i>&lt;|];}\\"]})"));
  const std::string svg = drawn(dot_of("odd.json"));
  if (svg.empty()) GTEST_SKIP() << "Graphviz is not installed";
  expect_parts(svg, {">s\\</text>", ">x\\N</text>", ">{&lt;i&gt;&amp;lt;|];}\\</text>", ">&#45;&gt;</text>"});
  EXPECT_EQ(svg.find("s\\/s\\"), std::string::npos) << svg;
}

TEST_F(InspectTest, DeepScopesAndEmptyGraphsAreDrawn) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "s/";
  place_.write("deep.json",
               graph_text(R"({"name": ")" + deep + R"(x", "op": "Placeholder", "attrs": {"shape": [2]}})"));
  const std::string dot = dot_of("deep.json");
  std::size_t clusters = 0;
  for (std::size_t at = dot.find("subgraph"); at != std::string::npos; at = dot.find("subgraph", at + 1)) ++clusters;
  EXPECT_EQ(clusters, 32u);
  place_.write("empty.json", graph_text(""));
  const std::string empty = dot_of("empty.json");
  EXPECT_EQ(empty.find("legend"), std::string::npos) << empty;
  drawn(empty);
}

TEST_F(InspectTest, ADiffListsWhatTheRewriteDid) {
  write_lenet5();
  const std::string rewritten = diff("float.json", "train.json");
  expect_parts(rewritten,
               {"added\n  conv1/weights_quant  FakeQuant  4 bits, last value, symmetric, narrow, of conv1/weights\n",
                "  fc2/act_quant        FakeQuant  8 bits, moving average, symmetric, of fc2/Relu\n",
                "\nrerouted\n  conv1/Conv2D input 1: was conv1/weights, now conv1/weights_quant\n",
                "  fc3/MatMul input 0: was fc2/Relu, now fc2/act_quant\n",
                "\noutputs\n  output 0: was fc3/BiasAdd, now fc3/act_quant\n",
                "\n30 nodes added (10 quantizers, 20 variables of their ranges), 0 nodes removed, 9 edges rerouted, "
                "0 attributes and 1 output changed\n"});
  expect_none(rewritten, {"/min", "removed\n", "changed\n  "});

  const std::string undone = diff("train.json", "float.json");
  expect_parts(undone, {"removed\n  conv1/weights_quant  FakeQuant  4 bits",
                        "  conv1/Conv2D input 1: was conv1/weights_quant, now conv1/weights\n",
                        "\n0 nodes added, 30 nodes removed (10 quantizers, 20 variables of their ranges), 9 edges"});

  expect_success(program("rewrite --graph train.json --mode eval --out eval.json"));
  const std::string evaluated = diff("train.json", "eval.json");
  expect_parts(evaluated, {"changed\n  conv1/weights_quant is_training: was true, now false\n",
                           "0 nodes added, 0 nodes removed, 0 edges rerouted, 10 attributes and 0 outputs changed\n"});
  EXPECT_EQ(diff("train.json", "train.json"), "the graphs are identical\n");
}

TEST_F(InspectTest, ADiffSeesEveryKindOfChange) {
  const std::string x = R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [1, 4, 4, 1]}}, )";
  const auto constant = [](const std::string& tenth) {
    return R"({"name": "c", "op": "Constant", "attrs": {"shape": [10], "value": [0, 1, 2, 3, 4, 5, 6, 7, 8, )" + tenth +
           "]}}, ";
  };
  place_.write("a.json", graph_text(x + constant("9") + R"({"name": "p", "op": "MaxPool", "inputs": ["x"],
      "attrs": {"window": [2, 2], "strides": [2, 2]}},
      {"name": "r", "op": "Relu", "inputs": ["p"]}, {"name": "old", "op": "Relu", "inputs": ["r"]})",
                                    "\"r\", \"old\""));
  place_.write("b.json", graph_text(x + constant("-9") + R"({"name": "p", "op": "MaxPool", "inputs": ["x"],
      "attrs": {"window": [2, 2], "strides": [1, 1]}},
      {"name": "r", "op": "Relu6", "inputs": ["x"]}, {"name": "new", "op": "Add", "inputs": ["r", "r"]})",
                                    "\"r\""));
  const std::string text = diff("a.json", "b.json");
  expect_parts(text, {"added\n  new  Add  [1,4,4,1] of r, r\n", "removed\n  old  Relu  [1,2,2,1] of r\n",
                      "rerouted\n  r input 0: was p, now x\n",
                      "  c value[9]: was 9, now -9 (1 of 10 elements differ)\n", "  p strides: was [2,2], now [1,1]\n",
                      "  r op: was Relu, now Relu6\n", "outputs\n  output 1: was old, now nothing\n",
                      "\n1 node added, 1 node removed, 1 edge rerouted, 3 attributes and 1 output changed\n"});

  place_.write("c.json", graph_text(R"({"name": "r", "op": "Relu", "inputs": ["x"]},
      {"name": "x", "op": "Placeholder", "attrs": {"shape": [1]}})"));
  place_.write("d.json", graph_text(R"({"name": "x", "op": "Placeholder", "attrs": {"shape": [1]}},
      {"name": "r", "op": "Relu", "inputs": ["x"]})"));
  EXPECT_EQ(diff("c.json", "d.json"), "the graphs are the same but for the order of their nodes\n");
}

TEST_F(InspectTest, ADiffTakesRunDirectories) {
  write_tiny_digits(place_, "digits", 8, 4);
  place_.write("tiny.json", tiny_classifier());
  expect_success(program("train --model tiny.json --dataset mnist --data-dir digits --steps 1 --threads 1 --out run"));
  EXPECT_EQ(diff("run", "run/train_graph.json"), "the graphs are identical\n");
  const Outcome flag_last = expect_success(program("inspect tiny.json run --diff"));
  EXPECT_EQ(flag_last.out, diff("tiny.json", "run"));
  expect_parts(flag_last.out, {"conv1/Conv2D input 1: was conv1/weights, now conv1/weights_quant"});
}

TEST_F(InspectTest, WrongUseOfDiffIsNamed) {
  place_.write("good.json", graph_text(""));
  place_.write("bad.json", R"({"format": "miniqat.graph",)");
  EXPECT_FALSE(fs::exists(path("x.dot")));
  expect_error(program("inspect --diff good.json bad.json"), 1, {"bad.json: "});
  expect_error(program("inspect --diff bad.json good.json"), 1, {"bad.json: "});
  expect_error(program("inspect --diff good.json nowhere.json"), 1, {"nowhere.json"});
  expect_error(program({"inspect", "--diff", place_.path().string(), "good.json"}), 1, {"holds no run"});
}

}  // namespace
}  // namespace miniqat::testing::inspect_test
