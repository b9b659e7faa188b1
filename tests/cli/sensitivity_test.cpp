// `miniqat sensitivity`: which layers quantization hurts, and bits for each of them that `--bits-config` takes.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::sensitivity_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class SensitivityProgramTest : public SharedPlaceTest<SensitivityProgramTest> {
 public:
  static void make() { make_float_run(*place_, "tiny", "float"); }

 protected:
  static Outcome sensitivity(const std::string& out, const Arguments& more = {}) {
    const Arguments bits = std::ranges::count(more, "--bits") == 0 ? "--bits 2,3,8" : "";
    return program("sensitivity --run float --threads 1 --batches 8 --pictures 40" + bits + Arguments{"--out", out} +
                   more);
  }
  static Json json(const std::string& file) { return Json::parse(bytes_of(path(file))); }
  static bool exists(const std::string& file) { return fs::exists(path(file)); }
};

bool has(const Outcome& outcome, const std::string& text) { return outcome.out.find(text) != std::string::npos; }

TEST_F(SensitivityProgramTest, PrintsATableWithTheWorstFirst) {
  const Outcome outcome = expect_success(sensitivity("table"));
  for (const char* text : {"4 quantizers of layers, 8 batches of 4 training pictures for calibration, 40 others for "
                           "evaluation\n",
                           "evaluation 0/19\n", "evaluation 19/19\n", "quantized alone  bits  loss increase",
                           "\nfloat ", "\n8 bits ", "\n2 bits ", "table/sensitivity.json has all figures\n"})
    EXPECT_TRUE(has(outcome, text)) << text << " in\n" << outcome.out;
  EXPECT_FALSE(exists("table/bits.json"));
  EXPECT_FALSE(exists("table/.lock"));
  const Json report = json("table/sensitivity.json");
  EXPECT_EQ(report["bits"], Json({8, 3, 2}));
  EXPECT_EQ(report["pictures"], 40);
  EXPECT_EQ(report["choice"], nullptr);
  std::string worst;
  double highest = -1;
  ASSERT_EQ(report["quantizers"].size(), 4u);
  for (const Json& one : report["quantizers"])
    for (const Json& measurement : one["alone"]) {
      EXPECT_NEAR(measurement["loss_increase"],
                  measurement["loss"].get<double>() - report["float"]["loss"].get<double>(), 1e-12);
      if (measurement["loss_increase"] <= highest) continue;
      highest = measurement["loss_increase"];
      worst = one["layer"].get<std::string>();
    }
  const std::size_t head = outcome.out.find("\nlayer ");
  const std::string first = outcome.out.substr(outcome.out.find('\n', head + 1) + 1);
  EXPECT_TRUE(first.starts_with(worst)) << first;
}

TEST_F(SensitivityProgramTest, RowsBeyondTwentyNeedVerbose) {
  const Outcome brief = expect_success(sensitivity("brief", {"--bits", "2,3,4,5,6,7,8"}));
  EXPECT_TRUE(has(brief, "... 8 rows more with --verbose\n")) << brief.out;
  const Outcome verbose = sensitivity("verbose", {"--bits", "2,3,4,5,6,7,8", "--verbose"});
  EXPECT_FALSE(has(verbose, "more with --verbose")) << verbose.out;
  EXPECT_EQ(std::ranges::count(verbose.out, '\n'), std::ranges::count(brief.out, '\n') + 7);
}

/// The bits of each quantizer that a rewrite with this file has.
TEST_F(SensitivityProgramTest, RewriteTakesTheChosenBits) {
  for (const Arguments& budget : {Arguments("--average-bits 3"), {"--bytes", "300"}}) {
    const std::string out = "choice" + budget[0];
    const Outcome outcome = expect_success(sensitivity(out, budget));
    EXPECT_TRUE(has(outcome, "\nchosen widths ")) << outcome.out;
    for (const char* text :
         {"\nmeasured within the budget: bits by layer ", ", 3 bits for all ", ", 2 bits for all ", "; taken: "})
      EXPECT_TRUE(has(outcome, text)) << text << " in\n" << outcome.out;
    const std::string flags = " --run float --bits-config " + out + "/bits.json";
    EXPECT_TRUE(has(outcome, "\nto use them: miniqat quantize" + flags + " --out RUN\n")) << outcome.out;
    EXPECT_TRUE(
        has(outcome, "\nto use them without training: miniqat calibrate" + flags + " --ranges auto --out PTQ\n"))
        << outcome.out;
    const Json bits = json(out + "/bits.json"), report = json(out + "/sensitivity.json");
    EXPECT_EQ(bits, report["choice"]["bits_config"]);
    const Outcome rewrite =
        expect_success(program("rewrite --graph float/eval_graph.json --mode eval" +
                               Arguments{"--bits-config", out + "/bits.json", "--out", out + ".json"}));
    std::int64_t weight_bytes = 0;
    const Json graph = json(out + ".json");
    for (const Json& node : graph["nodes"]) {
      if (node["op"] != "FakeQuant") continue;
      const std::string name = node["name"], scope = name.substr(0, name.find('/'));
      const Json& layer = bits[scope == "fc" ? "fc/MatMul" : "conv1/Conv2D"];
      const bool weights = name.ends_with("/weights_quant");
      EXPECT_EQ(node["attrs"]["bits"], layer[weights ? "weight_bits" : "activation_bits"]) << name;
      if (weights) weight_bytes += (node["attrs"]["bits"].get<std::int64_t>() * (scope == "fc" ? 640 : 36) + 7) / 8;
      if (!weights && budget[0] == "--bytes") {
        EXPECT_EQ(node["attrs"]["bits"], 8);
      }
    }
    EXPECT_EQ(report["choice"]["weight_bytes"], weight_bytes);
    EXPECT_EQ(report["choice"]["candidates"].size(), 3u);
    EXPECT_EQ(report["choice"]["candidates"][1]["uniform_bits"], 3);
    EXPECT_LE(weight_bytes, budget[0] == "--bytes" ? 300 : 676 * 3 / 8 + 1);
    const Outcome calibrate = program("calibrate --run float --threads 1 --batches 8 --ranges auto" +
                                      Arguments{"--bits-config", out + "/bits.json", "--out", out + "-run"});
    expect_success(calibrate);
    const Outcome quantize =
        expect_success(program("quantize --run float --threads 1 --batches 8 --epochs 1" +
                               Arguments{"--bits-config", out + "/bits.json", "--out", out + "-trained"}));
  }
}

/// Those of weights of few bits are symmetric, as `quantize` has them.
TEST_F(SensitivityProgramTest, MeasuresTheRangesOfQuantizeUnlessToldOtherwise) {
  const auto measured = [&](const std::string& out, const Arguments& more) {
    const Outcome outcome = expect_success(sensitivity(out, "--average-bits 3" + more));
    EXPECT_EQ(has(outcome, "quantize --run float --bits-config " + out + "/bits.json --ranges observed --out RUN\n"),
              std::ranges::count(more, "observed") > 0)
        << outcome.out;
    return json(out + "/sensitivity.json")["quantizers"];
  };
  const Json usual = measured("usual", {}), automatic = measured("auto", {"--ranges", "auto"});
  EXPECT_EQ(usual, automatic);
  EXPECT_NE(usual, measured("observed", {"--ranges", "observed"}));
  EXPECT_NE(usual, measured("asymmetric", {"--asymmetric-weights"}));
}

TEST_F(SensitivityProgramTest, MeasuresScalesThatArePowersOfTwo) {
  const Outcome outcome = expect_success(sensitivity("powers", {"--scales", "power-of-two", "--average-bits", "3"}));
  expect_success(sensitivity("any", {"--average-bits", "3"}));
  EXPECT_TRUE(has(outcome, "/bits.json --scales power-of-two --ranges auto --out PTQ\n")) << outcome.out;
  const Json powers = json("powers/sensitivity.json"), any = json("any/sensitivity.json");
  EXPECT_EQ(powers["scales"], "power-of-two");
  EXPECT_EQ(any["scales"], "any");
  EXPECT_NE(powers["together"], any["together"]);
}

TEST_F(SensitivityProgramTest, FilesAreReplacedOnlyIfAsked) {
  expect_success(sensitivity("again", {"--average-bits", "3", "--per-channel"}));
  EXPECT_TRUE(json("again/sensitivity.json")["per_channel"]);
  expect_error(sensitivity("again"), 1, {"again/sensitivity.json is there already", "--overwrite"});
  expect_success(sensitivity("again", {"--overwrite"}));
  EXPECT_FALSE(exists("again/bits.json")) << "widths of an earlier measurement";
  fs::remove(path("again/sensitivity.json"));
  place_->write("again/bits.json", "{}");
  expect_error(sensitivity("again"), 1, {"again/bits.json is there already"});
  expect_error(sensitivity("float", {"--overwrite"}), 1, {"float holds a run (config.json): give another --out"});
  EXPECT_TRUE(exists("float/config.json"));
}

TEST_F(SensitivityProgramTest, SaysWhatIsWrong) {
  expect_error(program("sensitivity --run nowhere --out no"), 1, {"nowhere holds no run"});
  write_tiny_digits(*place_, "large", 8, 8, 9);
  expect_error(sensitivity("no", "--data-dir large"), 1, {"[4,8,8,1]", "mnist", "[9,9,1]"});
  expect_error(sensitivity("digits/train-labels-idx1-ubyte/no"), 1, {"cannot make the run directory"});
  EXPECT_FALSE(exists("no"));
}

}  // namespace
}  // namespace miniqat::testing::sensitivity_test
