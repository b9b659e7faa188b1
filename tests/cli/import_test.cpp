// An ONNX model through the program: as files of `import`, and straight into the commands that take a graph.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "formats/onnx/onnx.pb.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "tests/temp_dir.h"

namespace miniqat::testing::import_program_test {
namespace {

void add_constant(pb::Graph& graph, const std::string& name, const std::vector<std::int64_t>& extents) {
  pb::Constant& constant = *graph.add_initializer();
  constant.set_name(name);
  constant.set_data_type(pb::FLOAT);
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) constant.add_dims(extent), elements *= extent;
  for (std::int64_t i = 0; i < elements; ++i) constant.add_float_data((static_cast<float>(i % 11) - 4.5f) / 64);
}

pb::Node& add_node(pb::Graph& graph, const std::string& type, const std::vector<std::string>& inputs,
                   const std::string& output) {
  pb::Node& node = *graph.add_node();
  node.set_op_type(type);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

constexpr const char* kSoftmax = "note: the final Softmax \"e\" is left out";

/// Of write_tiny_digits().
constexpr int kSide = 8;

/// Images of 8 x 8 in an open batch, a convolution with Relu, ten logits and a Softmax. `open`: the mean of its
/// channels goes to the logits, and the file leaves height and width open.
std::string network(bool open = false) {
  pb::Model model;
  model.add_opset_import()->set_version(13);
  pb::Graph& graph = *model.mutable_graph();
  pb::Value& images = *graph.add_input();
  images.set_name("images");
  images.mutable_type()->mutable_tensor_type()->set_elem_type(pb::FLOAT);
  auto& shape = *images.mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("n");
  for (const int extent : {1, kSide, kSide})
    if (open && extent == kSide)
      shape.add_dim()->set_dim_param("side");
    else
      shape.add_dim()->set_dim_value(extent);
  add_constant(graph, "conv.weight", {3, 1, 3, 3});
  add_constant(graph, "dense.weight", {open ? 3 : 3 * (kSide - 2) * (kSide - 2), 10});
  add_constant(graph, "dense.bias", {10});
  add_node(graph, "Conv", {"images", "conv.weight"}, "a");
  add_node(graph, "Relu", {"a"}, "b");
  if (open) add_node(graph, "GlobalAveragePool", {"b"}, "p");
  add_node(graph, "Flatten", {open ? "p" : "b"}, "c");
  add_node(graph, "Gemm", {"c", "dense.weight", "dense.bias"}, "d");
  add_node(graph, "Softmax", {"d"}, "e");
  graph.add_output()->set_name("e");
  return model.SerializeAsString();
}

class ImportProgramTest : public ProgramTest {
 protected:
  ImportProgramTest() {
    place_.write("net.onnx", network());
    write_tiny_digits(place_, "digits", 64, 16);
  }

  /// Whoever reads net.onnx says that its Softmax is left out; nothing else may be said.
  Outcome run(const Arguments& line, const Arguments& more = {}) const {
    Outcome outcome = program(line + more);
    if (outcome.err.starts_with(kSoftmax)) outcome.err.erase(0, outcome.err.find('\n') + 1);
    return expect_success(outcome);
  }
  std::string bytes(const std::string& file) const { return bytes_of(path(file)); }
  /// The bytes of each but the number of steps.
  std::map<std::string, std::string> variables_of(const std::string& run) const {
    std::map<std::string, std::string> variables;
    for (const auto& [name, tensor] : read_safetensors(place_.path() / run / "checkpoint.safetensors").tensors)
      if (!name.starts_with("session:")) variables[name] = {static_cast<const char*>(tensor.raw()), tensor.bytes()};
    return variables;
  }
};

TEST_F(ImportProgramTest, AModelTrainsFromItsWeights) {
  const Arguments settings = "train --dataset mnist --data-dir digits --float --steps 3 --threads 1";
  run("import net.onnx --out imported --batch-size 8");
  run(settings, {"--model", "imported/graph.json", "--init-checkpoint", "imported/weights.safetensors", "--out", "a"});
  expect_text(run(settings, {"--model", "net.onnx", "--batch-size", "8", "--out", "b"}).out,
              {"3 variables restored, 0 new, 0 unused"});
  EXPECT_TRUE(bytes("a/checkpoint.safetensors") == bytes("b/checkpoint.safetensors"));
  // Other weights come to others.
  run(settings, {"--model", "imported/graph.json", "--out", "fresh"});
  EXPECT_FALSE(bytes("a/checkpoint.safetensors") == bytes("fresh/checkpoint.safetensors"));
  // From here it is a run like any other.
  run("train --resume --out b --steps 5");
  run("quantize b --epochs 1 --validation 16 --out integers --threads 1");
  run("export integers --out net.c");
}

TEST_F(ImportProgramTest, ARunNeedsItsModelFileOnce) {
  run("import net.onnx --out imported --batch-size 8");
  const Arguments settings = "train --dataset mnist --data-dir digits --steps 3 --threads 1";
  run(settings, {"--float", "--model", "imported/graph.json", "--out", "json"});
  run(settings, {"--float", "--model", "net.onnx", "--batch-size", "8", "--out", "onnx"});
  run(settings, {"--model", "net.onnx", "--batch-size", "8", "--out", "quantized"});
  const Arguments quantize = "quantize --steps 2 --validation 16 --threads 1";
  // The file leaves the batch open, its copy has one.
  run(quantize, {"onnx", "--batch-size", "4", "--out", "fours"});
  std::filesystem::remove(path("net.onnx"));
  std::filesystem::remove_all(path("imported"));
  for (const std::string from : {"json", "onnx"}) {
    run(quantize, {from, "--out", from + "-integers"});
    run({"train", "--resume", "--out", from, "--steps", "5"});
  }
  run("train --resume --out quantized --steps 5");
  // A run of an earlier version.
  std::filesystem::remove(path("onnx/model_graph.json"));
  for (const Arguments& line : {Arguments("quantize onnx --out x"), {"train", "--resume", "--out", "onnx"}})
    expect_error(program(line), 1, {"the run in onnx needs its model file net.onnx", "put it back"});
}

TEST_F(ImportProgramTest, CommandsTakeAModelForAGraph) {
  run("import net.onnx --out imported");
  EXPECT_EQ(run("inspect net.onnx").out, run("inspect imported/graph.json").out);
  EXPECT_EQ(run("rewrite --graph net.onnx").out, run("rewrite --graph imported/graph.json").out);
  run("run --graph net.onnx --random-feeds --out a.safetensors");
  run("run --graph imported/graph.json --checkpoint imported/weights.safetensors --random-feeds --out b.safetensors");
  EXPECT_TRUE(bytes("a.safetensors") == bytes("b.safetensors"));
}

TEST_F(ImportProgramTest, EveryCommandSaysThatTheSoftmaxIsLeftOut) {
  const Arguments task = "--model net.onnx --dataset mnist --data-dir digits --threads 1 --batch-size 8";
  for (const Arguments& line :
       {Arguments("inspect net.onnx"), Arguments("rewrite --graph net.onnx --out q.json"),
        Arguments("run --graph net.onnx --random-feeds --out a.safetensors"),
        Arguments("export --format onnx-float --graph net.onnx --out logits.onnx"), "train --steps 2 --out run" + task,
        "train --float --steps 2 --out float" + task, "calibrate --batches 2 --out bytes" + task,
        "quantize --steps 2 --validation 16 --out integers" + task,
        "sensitivity --bits 8 --batches 2 --pictures 16 --out widths" + task}) {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::string said = outcome.out + outcome.err;
    const std::size_t first = said.find(kSoftmax);
    EXPECT_NE(first, std::string::npos) << said;
    EXPECT_EQ(said.find(kSoftmax, first + 1), std::string::npos) << "twice:\n" << said;
  }
  // A run that goes on has its own network.
  EXPECT_EQ(run("train --resume --out run --steps 3").out.find(kSoftmax), std::string::npos);
}

TEST_F(ImportProgramTest, AnUnusedLayerIsNotedOnce) {
  pb::Model model;
  ASSERT_TRUE(model.ParseFromString(network()));
  add_node(*model.mutable_graph(), "Gemm", {"c", "dense.weight", "dense.bias"}, "dead");
  place_.write("unused.onnx", model.SerializeAsString());
  for (const Arguments& line : {Arguments("inspect unused.onnx"), Arguments("rewrite --graph unused.onnx --out q.json"),
                                Arguments("rewrite --graph unused.onnx --report")}) {
    const Outcome outcome = program(line);
    const std::string said = outcome.out + outcome.err, note = "reaches no output: left out of training";
    const std::size_t first = said.find(note);
    EXPECT_NE(first, std::string::npos) << said;
    EXPECT_EQ(said.find(note, first + 1), std::string::npos) << said;
  }
}

/// As from a float run that has the model's weights: one step at a rate that changes nothing.
TEST_F(ImportProgramTest, AModelBecomesIntegersAtOnce) {
  const Arguments model = "--model net.onnx --dataset mnist --data-dir digits --threads 1 --batch-size 8";
  run("train --float --learning-rate 1e-30 --weight-decay 0 --steps 1 --out float" + model);
  const Arguments calibrate = "calibrate --batches 4 --weight-bits 4 --out";
  run(calibrate + "of-run float --threads 1");
  expect_text(run(calibrate + "of-model" + model).out, {"the float network has test accuracy"});
  EXPECT_TRUE(variables_of("of-model") == variables_of("of-run"));
  EXPECT_FALSE(variables_of("of-model") == variables_of("float"));

  const Arguments sensitivity = "sensitivity --bits 2,8 --batches 2 --pictures 16 --out widths --average-bits 4";
  run(sensitivity + "--run float --threads 1");
  auto measured_of_run = nlohmann::ordered_json::parse(bytes("widths/sensitivity.json"));
  const Outcome measured = run(sensitivity + "--overwrite" + model);
  expect_text(measured.out, {"to use them: miniqat quantize --model net.onnx --batch-size 8 --dataset mnist --data-dir "
                             "digits --bits-config widths/bits.json --out RUN"});
  auto measured_of_model = nlohmann::ordered_json::parse(bytes("widths/sensitivity.json"));
  EXPECT_EQ(measured_of_model["run"], nullptr);
  for (auto* json : {&measured_of_run, &measured_of_model})
    for (const char* key : {"run", "seconds"}) json->erase(key);
  EXPECT_EQ(measured_of_model, measured_of_run);

  const Arguments quantize =
      "quantize --steps 20 --validation 16 --weight-bits 4 --learning-rate 0.1 --weight-decay 0 --out";
  run(quantize + "integers-of-run float --threads 1");
  run(quantize + "integers" + model);
  EXPECT_TRUE(variables_of("integers/trained") == variables_of("integers-of-run/trained"));
  EXPECT_TRUE(variables_of("integers") == variables_of("integers-of-run"));
  run("export integers --out net.c");
  const std::string listed = run("runs . --commands").out;
  expect_text(listed,
              {"miniqat quantize --steps 20 ", " --out integers --model net.onnx --dataset mnist --data-dir digits "});

  // What is stopped goes on with the same model only.
  auto plan = nlohmann::ordered_json::parse(bytes("integers/quantize.json"));
  plan["complete"] = false;
  place_.write("integers/quantize.json", plan.dump());
  place_.write("net.onnx", network(true));
  const Arguments resume = "quantize --resume --out integers";
  expect_error(program(resume), 1, {"net.onnx, or a file of its weights, has changed since the run began"});
  place_.write("net.onnx", network());
  run(resume);
  EXPECT_TRUE(variables_of("integers") == variables_of("integers-of-run"));
}

TEST_F(ImportProgramTest, AChangedFileOfWeightsEndsARunToo) {
  pb::Model parts;
  ASSERT_TRUE(parts.ParseFromString(network()));
  pb::Constant& dense = *parts.mutable_graph()->mutable_initializer(1);
  const std::string weights(reinterpret_cast<const char*>(dense.float_data().data()),
                            dense.float_data().size() * sizeof(float));
  dense.clear_float_data();
  dense.set_data_location(1);
  pb::Property& location = *dense.add_external_data();
  location.set_key("location");
  location.set_value("dense.bin");
  place_.write("parts.onnx", parts.SerializeAsString());
  place_.write("dense.bin", weights);
  run("quantize --model parts.onnx --dataset mnist --data-dir digits --steps 2 --validation 16 --batch-size 8 "
      "--threads 1 --out run");
  auto plan = nlohmann::ordered_json::parse(bytes("run/quantize.json"));
  plan["complete"] = false;
  place_.write("run/quantize.json", plan.dump());
  std::string changed = weights;
  changed[2] = static_cast<char>(changed[2] ^ 1);
  place_.write("dense.bin", changed);
  // Nor is it the place of an output.
  const auto refuses_to_replace = [&](const std::string& file, const Arguments& words) {
    const std::string before = bytes(file);
    expect_error(program(words), 2, {concat("--out would replace ", file, ", which the command reads")});
    EXPECT_EQ(bytes(file), before);
  };
  refuses_to_replace("dense.bin", "run --graph parts.onnx --random-feeds --out dense.bin");
  refuses_to_replace("dense.bin", "export --format onnx-float --graph parts.onnx --out dense.bin");
  location.set_value("weights.safetensors");
  place_.write("in/parts.onnx", parts.SerializeAsString());
  place_.write("in/weights.safetensors", weights);
  refuses_to_replace("in/weights.safetensors", "import in/parts.onnx --out in");
  place_.write("in/graph.json", network());
  refuses_to_replace("in/graph.json", "import in/graph.json --out in");
  const Arguments resume = "quantize --resume --out run";
  expect_error(program(resume), 1, {"parts.onnx, or a file of its weights, has changed"});
  place_.write("dense.bin", weights);
  run(resume);
}

TEST_F(ImportProgramTest, AModelIsNoRun) {
  expect_error(program("calibrate net.onnx --out x"), 1,
               {"net.onnx is a file, not the directory of a run", "with --model"});
}

TEST_F(ImportProgramTest, AnOpenSizeIsGiven) {
  place_.write("open.onnx", network(true));
  run("import open.onnx --image-size 12x10 --out imported");
  const Arguments size = "--image-size 12x10";
  EXPECT_EQ(run("inspect open.onnx", size).out, run("inspect imported/graph.json").out);
  const Outcome diff = program("inspect --diff open.onnx imported/graph.json" + size);
  EXPECT_EQ(diff.out, run("inspect --diff imported/graph.json imported/graph.json").out);
  EXPECT_TRUE(diff.err.starts_with(concat("open.onnx: ", kSoftmax))) << diff.err;
  expect_text(program("inspect --diff open.onnx net.onnx --image-size 8").err,
              {concat("open.onnx: ", kSoftmax), concat("\nnet.onnx: ", kSoftmax)});
  EXPECT_EQ(run("rewrite --graph open.onnx", size).out, run("rewrite --graph imported/graph.json").out);
  run("run --graph open.onnx --random-feeds --out a.safetensors", size);
  run("run --graph imported/graph.json --checkpoint imported/weights.safetensors --random-feeds --out b.safetensors");
  EXPECT_TRUE(bytes("a.safetensors") == bytes("b.safetensors"));
  const Arguments to_onnx = "export --format onnx-float --graph";
  run(to_onnx, {"open.onnx", "--image-size", "12x10", "--out", "a.onnx"});
  run(to_onnx, {"imported/graph.json", "--checkpoint", "imported/weights.safetensors", "--out", "b.onnx"});
  EXPECT_EQ(run("inspect a.onnx").out, run("inspect b.onnx").out);
  expect_error(program("inspect open.onnx"), 1, {"leaves the size of axis 2 open", "--image-size"});
  expect_error(program("inspect net.onnx --image-size 9"), 1, {"has 8 pixels along axis 2"});
}

TEST_F(ImportProgramTest, AnOnnxFileIsOfTheLowestOpsetOrTheOneAskedFor) {
  run("train --model net.onnx --batch-size 8 --dataset mnist --data-dir digits --steps 3 --out integers");
  const auto opset = [&](const Arguments& flags) {
    run("export --out some.onnx", flags);
    pb::Model model;
    EXPECT_TRUE(model.ParseFromString(bytes("some.onnx")));
    return model.opset_import(0).version();
  };
  EXPECT_EQ(opset({"integers"}), 13);
  EXPECT_EQ(opset({"integers", "--opset", "17"}), 17);
  EXPECT_EQ(opset({"--format", "onnx-float", "--graph", "net.onnx"}), 13);
  EXPECT_EQ(opset({"--format", "onnx-float", "--graph", "net.onnx", "--opset", "21"}), 21);
}

TEST_F(ImportProgramTest, TheFloatNetworkGoesBackToOnnx) {
  run("import net.onnx --out imported --batch-size 8");
  const Arguments export_float = "export --format onnx-float";
  run(export_float,
      {"--graph", "imported/graph.json", "--checkpoint", "imported/weights.safetensors", "--out", "a.onnx"});
  const Outcome direct = run(export_float, {"--graph", "net.onnx", "--out", "b.onnx"});
  expect_text(direct.out, {"float32"});
  run("import a.onnx --out again --batch-size 8");
  run("import b.onnx --out direct --batch-size 8");
  for (const std::string from : {"imported", "again", "direct"})
    run("run --fetch dense/BiasAdd --random-feeds --threads 1" +
        Arguments{"--graph", from + "/graph.json", "--checkpoint", from + "/weights.safetensors", "--out",
                  from + ".safetensors"});
  EXPECT_TRUE(bytes("again.safetensors") == bytes("imported.safetensors"));
  EXPECT_TRUE(bytes("direct.safetensors") == bytes("imported.safetensors"));

  // A run's: with the grid of its pictures. Other formats have integers, which it does not have.
  run("train --model net.onnx --batch-size 8 --dataset mnist --data-dir digits --float --steps 3 --out float");
  run(export_float, {"float", "--out", "run.onnx"});
  pb::Model model;
  ASSERT_TRUE(model.ParseFromString(bytes("run.onnx")));
  ASSERT_GE(model.metadata_props_size(), 2);
  EXPECT_EQ(model.metadata_props(0).key(), "input_scale");
  EXPECT_EQ(model.metadata_props(1).value(), "0");
  run("train --model net.onnx --batch-size 8 --dataset mnist --data-dir digits --steps 3 --out quantized");
  expect_error(program("export quantized --format onnx-float --out refused.onnx"), 1, {"FakeQuant", "is a quantizer"});
}

TEST_F(ImportProgramTest, ReportsWhatBecameOfEachNode) {
  expect_text(run("import net.onnx --out imported").out, {"Softmax"});
  const auto report = nlohmann::json::parse(bytes("imported/import.json"));
  EXPECT_EQ(report["nodes"].size(), 5u);
}

TEST_F(ImportProgramTest, OnlyTheFirstOutputIsTrained) {
  const Arguments train =
      "train --dataset mnist --data-dir digits --float --steps 1 --out run --model two.json --threads 1";
  std::string two = tiny_classifier();
  const std::string outputs = R"("outputs": ["fc/BiasAdd")";
  ASSERT_NE(two.find(outputs), std::string::npos);
  place_.write("two.json", two.insert(two.find(outputs) + outputs.size(), R"(, "flatten")"));
  const std::string out = run(train).out;
  expect_text(out, {"note: two.json has 2 outputs; only the first, fc/BiasAdd, is trained; --output chooses another: "
                    "flatten\n"});
  std::filesystem::remove_all(path("run"));

  two = tiny_classifier();
  const std::string rate = R"({"name": "fc/biases", "op": "Variable", "attrs": {"shape": [10], )"
                           R"("initializer": {"type": "constant", "value": 0}}})";
  ASSERT_NE(two.find(rate), std::string::npos);
  two.replace(two.find(rate), rate.size(), R"({"name": "fc/biases", "op": "Placeholder", "attrs": {"shape": [10]}})");
  place_.write("two.json", two);
  expect_error(program(train), 1, {"two.json", "depends on [Placeholder \"fc/biases\"] as well as on the examples"});
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(ImportProgramTest, RefusesWithAReason) {
  run("train --model net.onnx --dataset mnist --data-dir digits --batch-size 8 --steps 1 --out run");
  expect_error(program("import net.onnx --out run"), 1, {"run holds a config.json"});
  EXPECT_FALSE(std::filesystem::exists(path("run/graph.json")));
  place_.write("broken.onnx", network().substr(0, 100));
  expect_error(program("inspect broken.onnx"), 1, {"broken.onnx"});
  expect_error(program("train --model missing.onnx --dataset mnist --data-dir digits --out x"), 1, {"missing.onnx"});
}

TEST_F(ImportProgramTest, OtherOutputsMayLieBehindTheSoftmaxOfTheChosenOne) {
  pb::Model model;
  ASSERT_TRUE(model.ParseFromString(network()));
  pb::Graph& graph = *model.mutable_graph();
  graph.mutable_node()->rbegin()->set_op_type("LogSoftmax");
  add_node(graph, "Relu", {"e"}, "f");
  graph.add_output()->set_name("f");
  place_.write("two.onnx", model.SerializeAsString());
  expect_error(program("import two.onnx --out all"), 1, {"[LogSoftmax \"e\"] is not the end of the network"});
  expect_text(run("import two.onnx --output e --out one").out, {"note: the final LogSoftmax \"e\" is left out"});
  run("import net.onnx --out same");
  for (const std::string file : {"/graph.json", "/weights.safetensors"})
    EXPECT_TRUE(bytes("one" + file) == bytes("same" + file)) << file;
  const Outcome outcome = program(
      "train --model two.onnx --output e --dataset mnist --data-dir digits --float --steps 2 --batch-size 8 --threads 1 --out run");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_text(outcome.out, {"3 variables restored, 0 new, 0 unused"});
}

}  // namespace
}  // namespace miniqat::testing::import_program_test
