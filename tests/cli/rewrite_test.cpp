// `miniqat rewrite`, `inspect` and `models`: graph files in, graph files, tables and pictures out.

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::rewrite_test {
namespace {

namespace fs = std::filesystem;

class RewriteTest : public ProgramTest {
 protected:
  void SetUp() override {
    layers::register_ops();
    quantize::register_ops();
  }

  void write_lenet5(const std::string& name) const {
    expect_success(program({"models", "--model", "lenet5", "--batch-size", "2", "--out", name}));
  }
};

std::vector<const quantize::FakeQuantAttributes*> quantizers_of(const Graph& graph) {
  std::vector<const quantize::FakeQuantAttributes*> quantizers;
  for (const Node* node : graph.nodes())
    if (const auto* quantizer = node->as<quantize::FakeQuant>()) quantizers.push_back(quantizer);
  return quantizers;
}

TEST_F(RewriteTest, RewritingTwiceGivesTheSameFile) {
  write_lenet5("lenet5.json");
  for (const std::string mode : {"train", "eval"}) {
    SCOPED_TRACE(mode);
    const auto rewrite = [&](const std::string& from, const std::string& to) {
      Arguments line = {"rewrite", "--graph", from, "--mode", mode, "--weight-bits", "4", "--out", to};
      if (mode == "train") line.insert(line.end(), {"--quant-delay", "9"});
      return program(line);
    };
    expect_success(rewrite("lenet5.json", mode + "1.json"));
    EXPECT_EQ(rewrite(mode + "1.json", mode + "2.json").err,
              "note: " + mode + "1.json is quantized already (W4A8, 10 quantizers); nothing changed\n");
    EXPECT_EQ(bytes_of(path(mode + "1.json")), bytes_of(path(mode + "2.json")));
    const Graph graph = read_graph(path(mode + "1.json"));
    EXPECT_EQ(quantizers_of(graph).size(), 10u);
    for (const quantize::FakeQuantAttributes* quantizer : quantizers_of(graph)) {
      EXPECT_EQ(quantizer->is_training, mode == "train");
      EXPECT_EQ(quantizer->bits, quantizer->narrow_range ? 4 : 8);
      EXPECT_EQ(quantizer->delay, mode == "train" ? 9 : 0);
    }
  }
}

TEST_F(RewriteTest, ATrainingGraphTurnsIntoTheEvaluationGraph) {
  write_lenet5("lenet5.json");
  expect_success(program("rewrite --graph lenet5.json --out train.json"));
  expect_success(program("rewrite --graph train.json --mode eval --out eval.json"));
  const Graph graph = read_graph(path("eval.json"));
  EXPECT_EQ(quantizers_of(graph).size(), 10u);
  for (const quantize::FakeQuantAttributes* quantizer : quantizers_of(graph)) EXPECT_FALSE(quantizer->is_training);
}

TEST_F(RewriteTest, AGraphMayReplaceItsOwnFileOrGoToStdout) {
  write_lenet5("lenet5.json");
  const Outcome printed = expect_success(program("rewrite --graph lenet5.json"));
  expect_success(program("rewrite --graph lenet5.json --out lenet5.json"));
  EXPECT_EQ(printed.out, bytes_of(path("lenet5.json")));
  EXPECT_EQ(graph_from_json(expect_success(program("models --model lenet5 --batch-size 3")).out, "stdout")
                .at("images")
                .output_specs()[0]
                .shape,
            (Shape{3, 28, 28, 1}));
}

TEST_F(RewriteTest, AFileThatWasWrittenIsNamed) {
  EXPECT_EQ(expect_success(program("models --model lenet5 --batch-size 2 --out lenet5.json")).out,
            "lenet5.json: lenet5, 28 nodes, 61706 parameters; images [2,28,28,1]\n");
  EXPECT_EQ(expect_success(program("rewrite --graph lenet5.json --weight-bits 4 --out train.json")).out,
            "train.json: 10 quantizers (W4A8)\n");
  EXPECT_EQ(expect_success(program("inspect lenet5.json --dot net.dot")).out, "net.dot: 28 nodes, for Graphviz\n");
}

TEST_F(RewriteTest, TheReportTellsEveryLayerAndEdge) {
  write_lenet5("lenet5.json");
  const Outcome outcome = expect_success(program("rewrite --graph lenet5.json --report --out train.json"));
  expect_text(outcome.out, {"5 layers matched", "10 quantizers inserted", "conv1/Conv2D", "fc3/MatMul",
                            "conv1/weights_quant", "fc2/act_quant", "the data set brings scale and zero point"});
  EXPECT_TRUE(fs::exists(path("train.json")));
}

TEST_F(RewriteTest, StrictNamesTheEdgeThatStaysFloat) {
  place_.write("float.json", R"({"format": "miniqat.graph", "version": 1, "nodes": [
    {"name": "images", "op": "Placeholder", "attrs": {"shape": [1, 4, 4, 2]}},
    {"name": "fixed", "op": "Constant", "attrs": {"shape": [1, 1, 2, 2], "value": 1}},
    {"name": "conv/Conv2D", "op": "Conv2D", "inputs": ["images", "fixed"]}], "outputs": ["conv/Conv2D"]})");
  const Outcome loose = program("rewrite --graph float.json --out loose.json");
  EXPECT_EQ(loose.status, 0);
  EXPECT_TRUE(loose.err.starts_with("note: 1 edge into layers left float: fixed -> conv/Conv2D (")) << loose.err;
  expect_error(program("rewrite --graph float.json --strict --out strict.json"), 1, {"conv/Conv2D", "fixed"});
  EXPECT_FALSE(fs::exists(path("strict.json")));
}

TEST_F(RewriteTest, InspectCountsAGraphAndARun) {
  write_lenet5("lenet5.json");
  expect_text(expect_success(program("inspect lenet5.json")).out,
              {"0 quantizers, 61706 trainable parameters, 833040 multiply-adds"});
  write_tiny_digits(place_, "digits", 8, 4);
  place_.write("tiny.json", tiny_classifier());
  expect_success(
      program("train --model tiny.json --dataset mnist --data-dir digits --steps 1 --weight-bits 3 --ranges observed "
              "--threads 1 --out run"));
  expect_text(expect_success(program("inspect run")).out,
              {"4 quantizers (W3A8), 690 trainable parameters", "3 bits, last value, narrow"});
}

TEST_F(RewriteTest, GraphvizReadsThePicture) {
  write_lenet5("lenet5.json");
  expect_success(program("rewrite --graph lenet5.json --out train.json"));
  expect_success(program("inspect train.json --dot train.dot"));
  const std::string text = bytes_of(path("train.dot"));
  expect_text(text, {"\"conv1/Relu\" -> \"conv1/act_quant\""});
  if (std::system("dot -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "Graphviz is not installed";
  const std::string command = "dot -Tsvg '" + path("train.dot").string() + "' -o '" + path("train.svg").string() +
                              "' 2>'" + path("dot.err").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(bytes_of(path("dot.err")), "");
  expect_text(bytes_of(path("train.svg")), {"conv1/act_quant"});
}

TEST_F(RewriteTest, ModelsAreListed) {
  const Outcome outcome = expect_success(program("models"));
  expect_text(outcome.out, {"lenet ", "lenet5", "61706", "3274634", "[28,28,1]", "mobilenet_v1      [224,224,3]",
                            "4231976", "568740352", "mobilenet_v2", "3504872", "300774272", "resnet20", "269722",
                            "40551040", "\nautoencoder       [640]           640     266896        264192  ",
                            "\nwake_word         [30,40]           3      46875        826368  "});
}

/// The last two columns are the published figures.
TEST_F(RewriteTest, ParametersAreCountedInThreeWays) {
  const std::string out = expect_success(program("models --count")).out;
  expect_text(out, {"\nresnet8                  77946        77706        78666       12501632\n",
                    "\nds_cnn                   23180        22604        24908        2656768\n",
                    "\nvisual_wake_words       213586       210850       221794        7489664\n",
                    "\nautoencoder             266896       265864       269992         264192\n",
                    "\nwake_word                46875        46883        47707         826368\n",
                    "\nlenet5                   61706        61706        61706         416520\n", "\nKeras: "});
  const std::string one = expect_success(program("models --count --model resnet8 --classes 2 --image-size 16")).out;
  EXPECT_EQ(one.find("lenet5"), one.npos) << one;
  expect_text(one, {"\nresnet8                  77426        77186        78146        3125376\n"});
}

TEST_F(RewriteTest, ModelsOfOtherInputsAreWritten) {
  const auto written = [&](const std::string& model) { return graph_from_json(program(model).out, "stdout"); };
  const Graph wake_word = written("models --model wake_word --batch-size 2 --classes 5");
  EXPECT_EQ(wake_word.at("images").output_specs()[0].shape, (Shape{2, 30, 40}));
  EXPECT_EQ(wake_word.outputs().front().shape(), (Shape{2, 5}));
  EXPECT_EQ(written("models --model autoencoder --batch-size 3").outputs().front().shape(), (Shape{3, 640}));
}

TEST_F(RewriteTest, ModelsAreWrittenForOtherPictures) {
  Arguments line = "models --model mobilenet_v1 --batch-size 2 --width 0.25";
  const Graph published = graph_from_json(program(line).out, "stdout");
  EXPECT_EQ(published.at("images").output_specs()[0].shape, (Shape{2, 224, 224, 3}));
  EXPECT_EQ(published.outputs().front().shape(), (Shape{2, 1000}));
  line.insert(line.end(), {"--image-size", "32", "--classes", "10"});
  const Graph small = graph_from_json(program(line).out, "stdout");
  EXPECT_EQ(small.at("images").output_specs()[0].shape, (Shape{2, 32, 32, 3}));
  EXPECT_EQ(small.outputs().front().shape(), (Shape{2, 10}));
}

// Each kind of malformed graph: tests/core/graph/graph_json_test.cpp.
TEST_F(RewriteTest, FilesThatAreNoGraphsAreNamedInOneLine) {
  const auto refuses = [&](const std::string& text, const std::vector<std::string>& parts) {
    place_.write("bad.json", text);
    for (const char* line : {"inspect bad.json", "rewrite --graph bad.json --out out.json"})
      expect_error(program(line), 1, parts);
    EXPECT_FALSE(fs::exists(path("out.json")));
  };
  refuses("", {"bad.json: "});
  refuses(R"({"format": "miniqat.graph", "version": 3, "nodes": []})", {"bad.json: ", "version"});
  refuses(R"({"format": "miniqat.graph", "version": 1, "nodes": [{"name": "a", "op": "Relu", "inputs": ["a"]}]})",
          {"bad.json: ", "cycle", "\"a\""});
  expect_error(program("inspect nowhere.json"), 1, {"nowhere.json"});
  expect_error(program({"inspect", place_.path().string()}), 1, {"holds no run"});
}

}  // namespace
}  // namespace miniqat::testing::rewrite_test
