// `miniqat verify` and `miniqat export` as a user runs them, on a run that takes milliseconds.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "core/text/error.h"
#include "core/text/json.h"
#include "integer/format/model_file.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::verify_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class IntegersOutTest : public ProgramTest {
 protected:
  void SetUp() override {
    write_tiny_digits(place_, "digits", 64, 30);
    place_.write("tiny.json", tiny_classifier());
  }

  /// A run of 40 steps.
  void train(const std::string& out, const Arguments& more = {}) const {
    const Arguments line = "train --model tiny.json --dataset mnist --data-dir digits --steps 40 --threads 1" +
                           Arguments{"--out", out} + more;
    expect_success(program(line));
  }
  Outcome verify(const Arguments& more = {}) const {
    return program("verify --run run --threads 1 --no-runtimes" + more);
  }
  Outcome export_as(const std::string& format, const std::string& out, const Arguments& more = {}) const {
    return program(Arguments{"export", "--run", "run", "--format", format, "--out", out} + more);
  }
  std::int64_t size(const std::string& name) const { return static_cast<std::int64_t>(fs::file_size(path(name))); }
};

TEST_F(IntegersOutTest, VerifyComparesEveryOperation) {
  train("run");
  const Json json = Json::parse(expect_success(verify({"--json", "--out", "verify.json"})).out);
  EXPECT_EQ(Json::parse(bytes_of(path("verify.json"))), json);
  EXPECT_EQ(json["simulated"]["examples"], 30);
  EXPECT_TRUE(json["reference_equal"]);
  EXPECT_GT(json["reference_examples"], 0);
  std::vector<std::string> operations;
  for (const Json& layer : json["layers"]) {
    operations.push_back(layer["operation"]);
    EXPECT_LE(layer["alone"]["largest_difference"], 1) << layer["operation"];
    EXPECT_GT(layer["alone"]["share"], 0.99) << layer["operation"];
    EXPECT_GT(layer["alone"]["count"], 0);
  }
  EXPECT_EQ(operations, (std::vector<std::string>{"conv1/Conv2D", "pool1", "flatten", "fc/MatMul"}));
  const Outcome integer = expect_success(program("eval --run run --integer --json --threads 1"));
  EXPECT_EQ(Json::parse(integer.out)["correct"], json["integer"]["correct"]);
}

TEST_F(IntegersOutTest, JsonTellsWhatWasComparedAndWhatBecameOfTheBounds) {
  place_.write("bits.json", R"({"fc": {"weight_bits": 8}})");
  train("run", "--weight-bits 3 --activation-bits 4 --ranges observed --bits-config bits.json");
  const Outcome outcome = verify(
      {"--json", "--examples", "12", "--max-steps", "0", "--min-agreement", "0", "--max-accuracy-difference", "100"});
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["run"], "run");
  EXPECT_EQ(json["model"], "tiny.json");
  EXPECT_EQ(json["dataset"], "mnist");
  EXPECT_EQ(json["quantization"], "W3-8A4 mixed");
  EXPECT_EQ(json["examples"], 12);
  EXPECT_EQ(json["bits"], Json::parse(R"({"weights": [3, 8], "activations": 4})"));
  EXPECT_EQ(outcome.status, json["passed"] ? 0 : 1);
  const Json& bounds = json["bounds"];
  EXPECT_EQ(bounds.size(), 3);
  EXPECT_EQ(bounds["min_agreement"]["holds"], true);
  EXPECT_DOUBLE_EQ(bounds["min_agreement"]["value"],
                   100 * json["simulated"]["top1_agreement_with_integer"].get<double>());
  EXPECT_EQ(bounds["max_accuracy_difference"]["holds"], true);
  int farthest = 0;
  for (const Json& layer : json["layers"])
    farthest = std::max(farthest, layer["alone"]["largest_difference"].get<int>());
  EXPECT_EQ(bounds["max_steps"]["value"], farthest);
  EXPECT_EQ(bounds["max_steps"]["holds"], farthest == 0);
  EXPECT_EQ(json["passed"], farthest == 0);
  const Json unbound = Json::parse(verify({"--json"}).out);
  EXPECT_EQ(unbound["bounds"].size(), 1) << unbound["bounds"];
  EXPECT_EQ(unbound["bounds"]["max_steps"]["bound"], 1);
  EXPECT_EQ(unbound["passed"], true);
}

TEST_F(IntegersOutTest, ATableIsForPeople) {
  train("run", "--weight-bits 4 --activation-bits 4");
  expect_text(
      expect_success(verify({"--examples", "7"})).out,
      {"7 test pictures", "simulated", "integer", "conv1/Conv2D", "given equal inputs", "reference loops: equal"});
}

TEST_F(IntegersOutTest, WhereNothingCanBeWrittenNothingIsCompared) {
  train("run");
  const Outcome outcome = verify({"--out", "no/such/place.json"});
  expect_error(outcome, 1, {"cannot write no/such/place.json", "No such file"});
  EXPECT_EQ(outcome.out, "");
  place_.write("before.json", "old");
  expect_error(verify({"--out", "before.json", "--dataset", "no"}), 2, {"no"});
  EXPECT_EQ(bytes_of(path("before.json")), "old");
  EXPECT_EQ(verify({"--out", "new.json", "--dataset", "no"}).status, 2);
  EXPECT_FALSE(fs::exists(path("new.json")));
}

TEST_F(IntegersOutTest, EveryFormatIsWritten) {
  train("run");
  expect_success(export_as("miniqat", "model.miniqat"));
  EXPECT_EQ(integer::read_model(path("model.miniqat")).weight_bytes(), 9 * 4 + 64 * 10);
  const Outcome file = program("eval --model model.miniqat --dataset mnist --data-dir digits --threads 1 --json"),
                run = program("eval --run run --integer --json");
  expect_success(file);
  EXPECT_EQ(Json::parse(file.out)["correct"], Json::parse(run.out)["correct"]);
  EXPECT_EQ(Json::parse(file.out)["model"], "run");
  for (const Outcome& outcome : {file, run}) {
    EXPECT_EQ(Json::parse(outcome.out)["quantization"], "W8A8");
    EXPECT_EQ(Json::parse(outcome.out)["bits"], Json::parse(R"({"weights": 8, "activations": 8})"));
  }
  for (const char* name : {"m.tflite", "m.onnx", "m.c", "m.json", "m.html"}) {
    expect_text(expect_success(export_as(fs::path(name).extension().string().substr(1), name)).out, {name});
    EXPECT_GT(size(name), 500);
  }
  EXPECT_TRUE(fs::exists(path("m.h")));
  const Json json = Json::parse(bytes_of(path("m.json")));
  EXPECT_EQ(json["operations"].size(), 4);
}

TEST_F(IntegersOutTest, Int8PerChannelTakesSymmetricWeights) {
  train("run", "--per-channel");
  expect_error(export_as("tflite", "m.tflite"), 1, {"conv1/Conv2D", "--symmetric-weights"});
  for (const std::string flag : {"--symmetric-weights", "--symmetric"}) {
    fs::remove_all(path("run"));
    train("run", {"--per-channel", flag});
    expect_success(export_as("tflite", "m.tflite"));
    expect_success(export_as("miniqat", "m.miniqat"));
    const integer::Model model = integer::read_model(path("m.miniqat"));
    for (const integer::Operation& operation : model.operations)
      if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) {
        EXPECT_TRUE(layer->per_channel()) << operation.name;
        for (const std::int32_t zero_point : layer->weight_zero_points) EXPECT_EQ(zero_point, 128) << operation.name;
      }
    EXPECT_EQ(model.output_of(model.operations.front()).grid.zero_point == 0, flag == "--symmetric-weights")
        << "all of the grid is for what a Relu lets through";
  }
}

TEST_F(IntegersOutTest, Int4IsForSymmetricWeightsOf4Bits) {
  train("run", "--weight-bits 4 --ranges observed");
  expect_error(export_as("tflite", "m.tflite", {"--int4"}), 1, {"conv1/Conv2D", "INT4", "--symmetric-weights"});
  fs::remove_all(path("run"));
  train("run", "--weight-bits 4 --symmetric-weights");
  expect_success(export_as("tflite", "m.tflite", {"--int4"}));
  expect_success(export_as("tflite", "bytes.tflite", {"--int8"}));
  EXPECT_LT(fs::file_size(path("m.tflite")), fs::file_size(path("bytes.tflite")));
  fs::remove_all(path("run"));
  train("run", "--symmetric-weights");
  expect_error(export_as("tflite", "m.tflite", {"--int4"}), 1, {"no layer has weights of at most 4 bits", "--int4"});
}

TEST_F(IntegersOutTest, ARunKeepsItsSymmetricWeights) {
  train("run", "--symmetric-weights");
  EXPECT_EQ(Json::parse(bytes_of(path("run/summary.json")))["quantization"], "W8A8 symmetric weights");
  expect_success(program("train --config run/config.json --out again"));
  EXPECT_EQ(bytes_of(path("again/eval_graph.json")), bytes_of(path("run/eval_graph.json")));
  EXPECT_EQ(bytes_of(path("again/checkpoint.safetensors")), bytes_of(path("run/checkpoint.safetensors")));
}

TEST_F(IntegersOutTest, WhatCannotBeExportedLeavesNoFile) {
  train("run", "--activation-bits 4");
  const Outcome outcome = export_as("tflite", "m.tflite");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_FALSE(fs::exists(path("m.tflite")));
  expect_text(outcome.err, {"8 bits"});
  expect_error(export_as("c", "run/config.json/m.c"), 1, {"run/config.json"});
  EXPECT_EQ(export_as("c", "m.txt").status, 2);
  expect_error(export_as("c", "m.c", {"--name", "a b"}), 2, {"--prefix \"a b\" (or --name) is not a C identifier"});
}

TEST_F(IntegersOutTest, TheEndingOfTheFileIsTheFormat) {
  train("run");
  const auto export_to = [&](const std::string& out, const Arguments& more = {}) {
    return program(Arguments{"export", "run", "--out", out} + more);
  };
  for (const std::string format : {"miniqat", "tflite", "onnx", "c", "json"}) {
    expect_success(export_to("guessed." + format));
    expect_success(export_as(format, "asked." + format));
    // The names in C files begin with that of the file.
    if (format == "c") continue;
    EXPECT_EQ(bytes_of(path("guessed." + format)), bytes_of(path("asked." + format))) << format;
  }
  EXPECT_TRUE(fs::exists(path("guessed.h")));
  expect_success(export_to("table.txt", {"--format", "json"}));
  EXPECT_EQ(bytes_of(path("table.txt")), bytes_of(path("asked.json")));
}

TEST_F(IntegersOutTest, CStatesItsMemoryAndItsAccuracy) {
  train("run");
  expect_text(expect_success(export_as("c", "m.c", {"--name", "net"})).out,
              {"\nflash: ", " bytes of weights, ", "\nRAM: ", " of scratch", "the input (64) and the output"});
  const double accuracy = 100 * Json::parse(bytes_of(path("run/summary.json")))["test_accuracy"].get<double>();
  char line[64];
  std::snprintf(line, sizeof line, "\n   Accuracy of the run on test pictures: %.2f%% (W8A8).", accuracy);
  EXPECT_NE(bytes_of(path("m.h")).find(line), std::string::npos) << bytes_of(path("m.h")).substr(0, 200);
  expect_success(export_as("c", "new/again/m.c", {"--prefix", "net"}));
  EXPECT_EQ(bytes_of(path("new/again/m.c")), bytes_of(path("m.c")));
  fs::copy(path("run/checkpoint.safetensors"), path("other.safetensors"));
  expect_success(export_as("c", "m.c", {"--checkpoint", "other.safetensors"}));
  EXPECT_EQ(bytes_of(path("m.h")).find("Accuracy"), std::string::npos);
}

TEST_F(IntegersOutTest, FlagsOfAnotherFormatAreUsageErrors) {
  train("run");
  EXPECT_FALSE(fs::exists(path("m.onnx")));
  expect_success(export_as("c", "m.c", {"--dataset", "mnist", "--data-dir", "digits", "--test-vectors", "3"}));
  write_tiny_digits(place_, "large", 8, 8, 9);
  expect_error(export_as("c", "other.c", "--dataset mnist --data-dir large"), 1,
               {"run/eval_graph.json", "the input is [", "8,8,1]", "pictures of mnist are [9,9,1]"});
  EXPECT_FALSE(fs::exists(path("other.c")));
}

TEST_F(IntegersOutTest, TheInputsGridIsTheDataSetsOrGivenByFlags) {
  train("run");
  const auto input = [&](const Arguments& more) {
    expect_success(export_as("json", "m.json", more));
    const Json json = Json::parse(bytes_of(path("m.json")));
    return std::pair(json["tensors"][0]["scale"].get<float>(), json["tensors"][0]["zero_point"].get<int>());
  };
  EXPECT_EQ(input({}), std::pair(1.0f / 255, 0));
  EXPECT_EQ(input({"--input-scale", "0.0078125", "--input-zero-point", "128"}), std::pair(0.0078125f, 128));
  EXPECT_EQ(input({"--input-scale", "0.5"}), std::pair(0.5f, 0));
  const std::string help = program("export --help").out;
  const std::size_t flag = help.find("--input-scale FLOAT ");
  ASSERT_NE(flag, std::string::npos) << "no default, which would be no scale of any data set:\n" << help;
  fs::remove_all(path("run"));
  train("run", "--quantize-input");
  expect_error(export_as("json", "bad.json", {"--input-scale", "0.5"}), 1, {"quantizes its input itself"});
  EXPECT_FALSE(fs::exists(path("bad.json")));
}

TEST_F(IntegersOutTest, ExportsSayWhatBytesAreToAnInputQuantizer) {
  train("run", "--quantize-input --activation-bits 6");
  const Outcome json = export_as("json", "m.json"), c = export_as("c", "m.c"), onnx = export_as("onnx", "m.onnx");
  for (const Outcome& outcome : {json, c, onnx}) {
    expect_success(outcome);
    expect_text(outcome.out, {"input: integers from 0 to 63, "});
  }
  const Json table = Json::parse(bytes_of(path("m.json"))).at("input_from_byte");
  EXPECT_EQ(table.size(), 256u);
  EXPECT_EQ(table[0], 0);
  EXPECT_EQ(table[255], 63);
  expect_text(bytes_of(path("m.h")), {"m_input_from_byte[256]"});
  const Outcome real = export_as("tflite", "m.tflite", {"--float-io"});
  EXPECT_EQ(real.out.find("input:"), std::string::npos) << real.out;
  const Json first = Json::parse(expect_success(verify({"--json"})).out)["layers"][0];
  EXPECT_EQ(first["alone"], first["end_to_end"]) << "the bytes became the integers that the simulated graph had";
}

TEST_F(IntegersOutTest, AnInt8FileHasIntegers128Less) {
  train("run", "--quantize-input --symmetric-weights");
  const std::string table = "which the table that --format json writes as input_from_byte maps to them";
  const Outcome bytes = export_as("tflite", "m.tflite"), int8 = export_as("tflite", "m.tflite", {"--int8"});
  expect_text(expect_success(bytes).out, {"input: integers from 0 to 255, ", table + "\n"});
  expect_text(expect_success(int8).out, {"input: integers from -128 to 127, ", table + ", 128 more than these\n"});
}

TEST_F(IntegersOutTest, ALimitOfFileSizesIsAWriteError) {
  train("run");
  fs::create_directory(path("out"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{.rlim_cur = 600, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Outcome outcome = started("export --run run --format miniqat --out out/model.miniqat", place_.path());
  setrlimit(RLIMIT_FSIZE, &before);
  expect_error(outcome, 1, {"cannot write out/model.miniqat", "File too large"});
  EXPECT_TRUE(fs::is_empty(path("out")));
}

TEST_F(IntegersOutTest, RunsMayHaveAnyName) {
  train("run");
  for (const std::string name : {"line\nfeed *\\", "not\xffUTF-8\xc3", "W\xc3\xb6rter"}) {
    fs::copy(path("run"), path(name));
    for (const char* format : {"miniqat", "tflite", "onnx", "c", "json"})
      expect_success(program({"export", "--run", name, "--format", format, "--out", concat("m.", format)}));
    for (const char c : integer::read_model(path("m.miniqat")).name) EXPECT_NE(c, '\n');
    EXPECT_TRUE(Json::accept(bytes_of(path("m.json"))));
    const std::string compile = concat("cd ", place_.path().string(),
                                       " && cc -std=c99 -Wall -Wextra -Werror -fsyntax-only -Wno-unused-function m.c");
    EXPECT_EQ(std::system(compile.c_str()), 0) << name;
    const Outcome outcome =
        expect_success(program({"verify", "--run", name, "--threads", "1", "--no-runtimes", "--json"}));
    EXPECT_TRUE(Json::accept(outcome.out)) << outcome.out;
  }
  EXPECT_EQ(integer::read_model(path("m.miniqat")).name, "W\xc3\xb6rter");
}

TEST_F(IntegersOutTest, UnfinishedRunsAreNoted) {
  train("run", "--stop-at 3");
  const std::string note = "note: the run in run is unfinished: its checkpoint is of step 3 (";
  const std::vector<Arguments> lines = {{"eval", "--run", "run"},
                                        {"verify", "--run", "run", "--no-runtimes"},
                                        {"export", "--run", "run", "--format", "json", "--out", "m.json"}};
  for (const Arguments& line : lines) {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_TRUE(outcome.err.starts_with(note)) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  fs::remove(path("run/summary.json"));
  EXPECT_TRUE(program(lines[0]).err.starts_with(note));
  train("done");
  expect_text(program("eval --run done --checkpoint run").err, {"the run in run"});
  expect_success(program("eval --run run --checkpoint done"));
  train("float", "--float --stop-at 3");
  const Outcome calibrated = program("calibrate --run float --out ptq");
  EXPECT_EQ(calibrated.status, 0);
  EXPECT_TRUE(calibrated.err.starts_with("note: the run in float is unfinished")) << calibrated.err;
  expect_success(program("eval --run ptq"));
}

TEST_F(IntegersOutTest, AFloatRunHasNoIntegers) {
  train("run", "--float");
  const Outcome evaluated = program("eval --run run --json");
  EXPECT_TRUE(Json::parse(evaluated.out)["bits"].is_null()) << evaluated.out;
  for (const Outcome& outcome : {verify(), export_as("json", "m.json")}) {
    EXPECT_EQ(outcome.status, 1);
    expect_text(outcome.err, {"calibrate"});
  }
  expect_error(export_as("onnx", "m.onnx"), 1, {"this is a float network", "--format onnx-float exports it"});
}

}  // namespace
}  // namespace miniqat::testing::verify_test
