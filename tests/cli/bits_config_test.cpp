// --bits-config as a user gives it: to `rewrite`, to `train`, and what a run makes of it.

#include <gtest/gtest.h>

#include "core/graph/graph_json.h"
#include "core/text/json.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::bits_config_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class BitsConfigTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    layers::register_ops();
    quantize::register_ops();
    place_.write("bits.json", R"({"conv1": {"weight_bits": 8, "per_channel": true}, "*": 4})");
  }

  Json json_of(const std::string& name) const { return Json::parse(bytes_of(path(name))); }

  static std::int64_t bits(const Graph& graph, const std::string& quantizer) {
    return graph.at(quantizer).as<quantize::FakeQuant>()->bits;
  }
  static void expect_mixed(const Graph& graph) {
    EXPECT_EQ(bits(graph, "conv1/weights_quant"), 8);
    EXPECT_EQ(bits(graph, "conv1/act_quant"), 6);
    EXPECT_EQ(bits(graph, "fc/weights_quant"), 4);
    EXPECT_EQ(bits(graph, "fc/act_quant"), 4);
    EXPECT_TRUE(graph.at("conv1/weights_quant").as<quantize::FakeQuant>()->per_channel);
    EXPECT_FALSE(graph.at("fc/weights_quant").as<quantize::FakeQuant>()->per_channel);
  }
};

TEST_F(BitsConfigTest, UnusedPatternsAreReported) {
  place_.write("bits.json", R"({"cnov1": 8, "fc": 4})");
  const std::string note =
      "note: bits of layers (--bits-config): pattern \"cnov1\" is unused: it matches no layer; did you "
      "mean \"conv1\"?\n";
  const Arguments line = "rewrite --graph tiny.json --bits-config bits.json --out out.json";
  EXPECT_EQ(program(line).err, note);
  Arguments with_report = line;
  with_report.push_back("--report");
  expect_text(expect_success(program(with_report)).out, {note, "fc/weights_quant (4 bits)"});
  expect_text(expect_success(train("run", "--bits-config bits.json")).out, {note});
}

// Each kind of wrong file: tests/quantize/rewrite/layer_bits_test.cpp.
TEST_F(BitsConfigTest, FilesThatCannotBeAreRefused) {
  place_.write("bad.json", R"({"conv1": 17})");
  for (const char* command : {"train --model tiny.json --out run", "rewrite --graph tiny.json"}) {
    expect_error(program(command + Arguments("--bits-config bad.json")), 2,
                 {"bad.json: ", "\"conv1\"", "2 to 16", "17"});
    expect_error(program(command + Arguments("--bits-config nowhere.json")), 1, {"nowhere.json"});
  }
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(BitsConfigTest, ARunKeepsItsOwnCopy) {
  expect_success(train("whole", "--activation-bits 6 --bits-config bits.json"));
  expect_success(train("run", "--activation-bits 6 --bits-config bits.json --stop-at 5"));
  const Json rules = Json::parse(
      R"({"conv1": {"weight_bits": 8, "per_channel": true}, "*": {"weight_bits": 4, "activation_bits": 4}})");
  EXPECT_EQ(json_of("run/bits.json"), rules);
  fs::remove(path("bits.json"));
  fs::rename(path("run"), path("moved"));
  expect_success(program("train --resume --out moved"));
  EXPECT_EQ(checkpoint_bytes("moved"), checkpoint_bytes("whole"));
  expect_mixed(read_graph(path("moved/train_graph.json")));
  expect_mixed(read_graph(path("moved/eval_graph.json")));

  const Json summary = json_of("moved/summary.json");
  EXPECT_EQ(summary["quantization"], "W4-8A4-6 mixed per channel learned");
  EXPECT_EQ(summary["bits"], Json({{"weights", {4, 8}}, {"activations", {4, 6}}}));
  EXPECT_EQ(summary["layer_bits"], rules);
  const Outcome evaluated = expect_success(program("eval --run moved --threads 1 --json"));
  EXPECT_EQ(Json::parse(evaluated.out)["quantization"], "W4-8A4-6 mixed per channel learned");
  EXPECT_EQ(Json::parse(evaluated.out)["accuracy"], summary["test_accuracy"]);

  expect_success(program("train --config whole/config.json --out again"));
  EXPECT_EQ(checkpoint_bytes("again"), checkpoint_bytes("whole"));
}

// Its config.json has the copies' paths, where another run may lie by now.
TEST_F(BitsConfigTest, TheConfigOfAMovedRunTakesTheCopiesBesideIt) {
  place_.write("weights.json", "[1, 2, 1, 1, 1, 1, 1, 1, 1, 1]");
  expect_success(train("run", "--bits-config bits.json --class-weights weights.json --steps 2"));
  fs::rename(path("run"), path("moved"));
  place_.write("bits.json", R"({"*": 6})");
  place_.write("weights.json", "[3, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
  expect_success(train("run", "--bits-config bits.json --class-weights weights.json --steps 2"));
  expect_success(program("train --config moved/config.json --out again"));
  EXPECT_EQ(json_of("again/bits.json"), json_of("moved/bits.json"));
  EXPECT_EQ(json_of("again/class_weights.json"), json_of("moved/class_weights.json"));
  EXPECT_EQ(checkpoint_bytes("again"), checkpoint_bytes("moved"));
  expect_success(program("train --config moved/config.json --bits-config bits.json --out other"));
  EXPECT_EQ(json_of("other/bits.json"), json_of("run/bits.json"));
}

TEST_F(BitsConfigTest, ResumingKeepsToTheBitsOfTheRun) {
  expect_success(train("run", "--bits-config bits.json --stop-at 5"));
  place_.write("same.json", R"({"conv1": {"per_channel": true, "weight_bits": 8}, "*": 4})");
  place_.write("other.json", R"({"conv1": 6})");
  expect_error(resume("run", "--bits-config other.json"), 2, {"--bits-config", "other.json", "run/bits.json"});
  expect_success(resume("run", "--bits-config same.json --stop-at 7"));
  fs::remove(path("run/bits.json"));
  expect_error(resume("run"), 1, {"run/bits.json"});

  expect_success(train("plain", "--stop-at 5"));
  expect_error(program("train --resume --out plain --bits-config other.json"), 2,
               {"--bits-config", "other.json", "none"});
  EXPECT_EQ(json_of("plain/summary.json")["layer_bits"], nullptr);
  EXPECT_FALSE(fs::exists(path("plain/bits.json")));
}

}  // namespace
}  // namespace miniqat::testing::bits_config_test
