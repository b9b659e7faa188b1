// Networks that are no classifiers of pictures, and classifiers with other outputs beside the logits.

#include <gtest/gtest.h>

#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "formats/onnx/onnx.pb.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::outputs_test {
namespace {

/// The classifier of tiny_task.h behind another head, of `outputs` numbers, which comes first.
std::string two_heads(int outputs = 5) {
  const std::string place = R"(    {"name": "fc/weights")", size = std::to_string(outputs);
  std::string text = tiny_classifier();
  text.insert(text.find(place), R"(    {"name": "aux/weights", "op": "Variable", "attrs": {"shape": [64, )" + size +
                                    R"(], "initializer": {"type": "he_normal"}}},
    {"name": "aux/MatMul", "op": "MatMul", "inputs": ["flatten", "aux/weights"]},
)");
  return replaced(text, R"("outputs": [)", R"("outputs": ["aux/MatMul", )");
}

/// An ONNX model of pictures 8 x 8 with the outputs "side" of 4 numbers and "scores" of ten.
std::string two_headed_onnx() {
  pb::Model model;
  model.add_opset_import()->set_version(13);
  pb::Graph& graph = *model.mutable_graph();
  pb::Value& images = *graph.add_input();
  images.set_name("images");
  images.mutable_type()->mutable_tensor_type()->set_elem_type(pb::FLOAT);
  for (const int extent : {4, 1, 8, 8})
    images.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
  const auto node = [&](const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
    pb::Node& one = *graph.add_node();
    one.set_op_type(type);
    for (const std::string& input : inputs) one.add_input(input);
    one.add_output(output);
  };
  node("Flatten", {"images"}, "flat");
  for (const auto& [name, size] : {std::pair{"side", 4}, {"scores", 10}}) {
    pb::Constant& weights = *graph.add_initializer();
    weights.set_name(std::string(name) + ".weight");
    weights.set_data_type(pb::FLOAT);
    for (const int extent : {64, size}) weights.add_dims(extent);
    for (int i = 0; i < 64 * size; ++i) weights.add_float_data(static_cast<float>(i % 13 - 6) / 64);
    node("Gemm", {"flat", weights.name()}, name);
    graph.add_output()->set_name(name);
  }
  return model.SerializeAsString();
}

class Outputs : public TinyTaskTest {
 protected:
  /// No step is taken, and no run is left behind.
  void expect_refused(const std::string& model, const std::vector<std::string>& parts, const Arguments& more = {}) {
    const Arguments line = Arguments{"--model", model} + more;
    for (const bool in_float : {true, false}) {
      Arguments all = line;
      if (in_float) all.emplace_back("--float");
      expect_error(train("refused", all), 1, parts);
      EXPECT_FALSE(std::filesystem::exists(path("refused") / "config.json"));
    }
  }
  std::string run(const Arguments& line) const {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out + outcome.err;
  }
};

TEST_F(Outputs, ARegressionIsRefusedBeforeTheFirstStep) {
  const std::string one =
      replaced(replaced(tiny_classifier(), "[64, 10]", "[64, 1]"), R"("shape": [10])", R"("shape": [1])");
  place_.write("one.json", one);
  expect_refused("one.json", {"the logits are [4,1]", "fc/BiasAdd gives one number for an example", "(--task)",
                              "a network for classes has a logit for each class"});
  place_.write("three.json", replaced(replaced(one, "[64, 1]", "[64, 3]"), R"("shape": [1])", R"("shape": [3])"));
  expect_refused("three.json", {"the logits are [4,3], mnist needs [4,10]", "a logit for each class"});
}

TEST_F(Outputs, SensorsAndPicturesAsOutputAreRefused) {
  place_.write("rows.json", R"({"format": "miniqat.graph", "version": 1, "nodes": [
    {"name": "x", "op": "Placeholder", "attrs": {"shape": [4, 360]}},
    {"name": "w", "op": "Variable", "attrs": {"shape": [360, 10], "initializer": {"type": "he_normal"}}},
    {"name": "y", "op": "MatMul", "inputs": ["x", "w"]}], "outputs": ["y"]})");
  expect_refused("rows.json", {"rows.json", "the input is [4,360], the pictures of mnist are [8,8,1]"});
  place_.write("map.json", replaced(tiny_classifier(), R"("outputs": ["fc/BiasAdd"])", R"("outputs": ["pool1"])"));
  expect_refused("map.json", {"the first output, pool1 [4,4,4,4], must be logits [n, classes]"});
}

TEST_F(Outputs, TheFirstOfSeveralThatIsNoLogitsNamesTheOthers) {
  place_.write("two.json", two_heads());
  expect_refused("two.json",
                 {"the logits are [4,5], mnist needs [4,10]", "--output chooses another output: fc/BiasAdd"});
  place_.write("one.json", two_heads(1));
  expect_refused("one.json", {"aux/MatMul gives one number", "--output chooses another output: fc/BiasAdd"});
  expect_refused("two.json", {"there is no output \"fc\" (--output); the outputs are: aux/MatMul, fc/BiasAdd"},
                 {"--output", "fc"});
}

/// Then the run is that of a file without the others.
TEST_F(Outputs, TheChosenOneIsTrainedAndExported) {
  place_.write("two.json", two_heads());
  const std::string said = run(train_command("chosen", "--model two.json --output fc/BiasAdd"));
  expect_text(said, {"note: two.json has 2 outputs; only fc/BiasAdd, as asked, is trained\n"});
  EXPECT_EQ(said.find("reaches no output"), std::string::npos) << said;
  run(train_command("plain"));
  EXPECT_TRUE(checkpoint_bytes("chosen") == checkpoint_bytes("plain"));
  // Whatever the first one is.
  place_.write("map.json", replaced(tiny_classifier(), R"("outputs": [)", R"("outputs": ["pool1", )"));
  run(train_command("map", "--model map.json --output fc/BiasAdd"));
  EXPECT_TRUE(checkpoint_bytes("map") == checkpoint_bytes("plain"));
  EXPECT_EQ(bytes_of(path("chosen") / "eval_graph.json"), bytes_of(path("plain") / "eval_graph.json"));
  EXPECT_EQ(nlohmann::json::parse(bytes_of(path("chosen") / "config.json"))["output"], "fc/BiasAdd");
  for (const char* name : {"chosen", "plain"})
    run({"export", name, "--format", "json", "--out", concat(name, ".model.json")});
  // Its copy is there when the file is gone.
  std::filesystem::remove(path("two.json"));
  EXPECT_EQ(resume("chosen", "--steps 14").status, 0);
  EXPECT_EQ(resume("plain", "--steps 14").status, 0);
  EXPECT_TRUE(checkpoint_bytes("chosen") == checkpoint_bytes("plain"));
}

TEST_F(Outputs, OnnxModelsAreAskedByTheNamesOfTheirFile) {
  place_.write("two.onnx", two_headed_onnx());
  expect_refused("two.onnx", {"the logits are", "--output chooses another output: scores"});
  const Arguments model = "--model two.onnx --output scores --dataset mnist --data-dir digits --threads 1";
  run("calibrate --out calibrated" + model);
  run("quantize --epochs 1 --validation 8 --out quantized" + model);
  run("sensitivity --out measured" + model);
  expect_text(run("import two.onnx --output scores --out imported"),
              {"nothing: only other outputs need it", "scores/MatMul"});
  for (const auto& node : nlohmann::json::parse(bytes_of(path("imported") / "import.json"))["nodes"])
    EXPECT_EQ(node["becomes"].get<std::string>().find("side/"), std::string::npos) << node;
  EXPECT_EQ(read_safetensors(path("imported") / "weights.safetensors").tensors.size(), 1u);
  run(train_command("from-import", "--model imported/graph.json --init-checkpoint imported/weights.safetensors"));
  expect_error(program("import two.onnx --output x --out refused"), 1,
               {"two.onnx: there is no output \"x\"", "side, scores"});
  run(train_command("float", "--model two.onnx --output scores --float"));
  run("quantize float --epochs 1 --validation 8 --out from-run --threads 1");
  for (const char* name : {"calibrated", "quantized", "from-run"}) {
    run({"export", name, "--format", "tflite", "--out", concat(name, ".tflite")});
    run({"eval", name, "--integer"});
    for (const auto& [variable, value] : read_safetensors(path(name) / "checkpoint.safetensors").tensors)
      EXPECT_EQ(variable.find("side"), std::string::npos) << variable;
  }
}

}  // namespace
}  // namespace miniqat::testing::outputs_test
