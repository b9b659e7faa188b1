// `miniqat report`: the numbers of its page are those of the commands that measure them, for runs in any state, and the
// command on it is the one that was typed: a shell runs it, and the checkpoints are equal.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::report_test {
namespace {

using Json = nlohmann::json;

class ReportTest : public TinyTaskTest {
 protected:
  /// The data of a report on these words.
  Json report(const Arguments& words) const {
    const Outcome outcome = program("report --out report.html --threads 1" + words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return report_data(path("report.html"));
  }

  Json json(const Arguments& line) const {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }

  static const Json& named(const Json& list, const std::string& name) {
    const auto found = std::ranges::find_if(list, [&](const Json& one) { return one["name"] == name; });
    EXPECT_NE(found, list.end()) << name;
    return *found;
  }

  void expect_equal_to_eval(const Json& answers, const Arguments& how) const {
    const Json eval = json("eval --json --by-class --threads 1" + how);
    for (const char* key : {"examples", "correct", "accuracy", "loss", "classes", "confusion"})
      EXPECT_EQ(answers[key], eval[key]) << answers["name"] << " " << key;
  }
};

/// Float, calibrated, trained, integers; verify and sensitivity.
TEST_F(ReportTest, HasTheNumbersOfTheOtherCommands) {
  expect_success(train("float", "--float"));
  ASSERT_EQ(program("quantize float --weight-bits 4 --activation-bits 4 --batches 2 --epochs 1 --validation 8 "
                    "--threads 1 --out run")
                .status,
            0);
  const Json verified = json({"verify", "run", "--no-runtimes", "--json", "--threads", "1"});
  expect_success(program("sensitivity float --bits 2,4 --pictures 8 --batches 2 --threads 1 --out sens"));
  const Json data = report({"run", "--sensitivity", "sens", "--pictures", "3"});
  ASSERT_EQ(data["runs"].size(), 1u);
  const Json& run = data["runs"][0];
  EXPECT_EQ(run["float_run"], "float");
  EXPECT_EQ(run["listed"]["command"].get<std::string>().find("miniqat quantize float "), 0u);
  const std::string chosen = json_of(path("run/quantize.json"))["chosen"];
  EXPECT_EQ(run["notes"].size(), chosen == "calibrated" ? 1u : 0u) << "the curves are of another network then";
  EXPECT_FALSE(run["curves"]["numbers"].contains("test_accuracy")) << "a validation part decides";
  EXPECT_EQ(run["curves"]["numbers"]["validation_accuracy"].size(), 1u);
  expect_equal_to_eval(named(run["answers"], "float"), {"float"});
  expect_equal_to_eval(named(run["answers"], chosen), {"run"});
  expect_equal_to_eval(named(run["answers"], "integers"), {"run", "--integer"});
  // The table of `quantize`, whose numbers are these, too.
  const Json table = json_of(path("run/quantize.json"))["rows"];
  ASSERT_EQ(run["results"].size(), table.size());
  for (std::size_t i = 0; i < table.size(); ++i)
    for (const auto& [key, value] : table[i].items()) EXPECT_EQ(run["results"][i][key], value) << key;
  Json kept = run["verification"];
  EXPECT_EQ(kept["variables"].get<std::string>().size(), 16u);
  kept.erase("variables");
  EXPECT_EQ(kept, verified);
  EXPECT_TRUE(run["verification_is_current"]);
  EXPECT_EQ(data["sensitivity"], json_of(path("sens/sensitivity.json")));
  std::int64_t bytes = 0, work = 0;
  for (const Json& layer : run["layers"]) {
    bytes += layer["cost"]["parameter_bytes"].get<std::int64_t>();
    work += layer["cost"]["bit_operations"].get<std::int64_t>();
  }
  EXPECT_EQ(bytes, table.back()["parameter_bytes"]);
  EXPECT_EQ(work, table.back()["bit_operations"]);
  const Json& comparison = run["comparison"];
  const auto count = [&](const char* key) { return comparison[key].get<std::int64_t>(); };
  EXPECT_EQ(count("both_right") + count("only_float_right"), named(run["answers"], "float")["correct"]);
  EXPECT_EQ(count("both_right") + count("only_integers_right"), named(run["answers"], "integers")["correct"]);
  EXPECT_EQ(comparison["lost"].size(), std::min<std::int64_t>(3, count("only_float_right")));
  EXPECT_LT(bytes_of(path("report.html")).size(), 5'000'000u);
  // As a process leaves it that has not chosen a network yet: the run of its last stage.
  std::filesystem::remove(path("run/config.json"));
  const Json stage = report({"run"})["runs"][0];
  EXPECT_EQ(stage["path"], "run/trained");
  // Its table has the calibration, too, as `quantize` measured it.
  const Json before = json_of(path("run/calibrated/summary.json")), row = named(stage["results"], "calibrated");
  for (const char* key : {"validation_accuracy", "validation_loss", "test_accuracy", "test_loss", "seconds"})
    EXPECT_EQ(row[key], before[key]) << key;
  EXPECT_EQ(row["parameter_bytes"], table.back()["parameter_bytes"]);
  EXPECT_EQ(stage["results"].size(), 4u);
}

/// A layer with 2 bits between layers with 8.
TEST_F(ReportTest, RanksTheLayerWithFewBitsFirst) {
  place_.write("bits.json", R"({"conv1": {"weight_bits": 2, "activation_bits": 8}, "*": 8})");
  expect_success(train("run", "--bits-config bits.json"));
  const Json run = report({"run"})["runs"][0];
  const Json& layers = run["layers"];
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0]["name"], "conv1/Conv2D");
  EXPECT_EQ(layers[0]["cost"]["weight_bits"], 2);
  EXPECT_LT(layers[0]["snr_alone_db"].get<double>() + 10, layers[1]["snr_alone_db"].get<double>());
  EXPECT_LT(layers[0]["weights"]["snr_db"].get<double>() + 10, layers[1]["weights"]["snr_db"].get<double>());
  // The second layer's inputs are no better than the first one's output.
  EXPECT_LT(layers[1]["snr_from_picture_db"], layers[1]["snr_alone_db"]);
  EXPECT_EQ(layers[0]["snr_from_picture_db"], layers[0]["snr_alone_db"]) << "pictures are the same in both";
  // Bits on the edges of the rewritten graph.
  const Json& graph = run["graphs"]["after"];
  std::map<std::string, std::int64_t> bits;
  for (const Json& edge : graph["edges"])
    bits[concat(graph["nodes"][edge[0].get<std::size_t>()]["name"].get<std::string>(), " > ",
                graph["nodes"][edge[1].get<std::size_t>()]["name"].get<std::string>())] = edge[2];
  EXPECT_EQ(bits.at("images > conv1/Conv2D"), 8);
  EXPECT_EQ(bits.at("conv1/weights > conv1/weights_quant"), 32);
  EXPECT_EQ(bits.at("conv1/weights_quant > conv1/Conv2D"), 2);
  EXPECT_EQ(bits.at("conv1/Conv2D > conv1/BiasAdd"), 32);
  EXPECT_EQ(bits.at("pool1 > flatten"), 8) << "what keeps the range keeps the integers";
  EXPECT_EQ(bits.at("fc/weights_quant > fc/MatMul"), 8);
  for (const Json& edge : run["graphs"]["before"]["edges"]) EXPECT_EQ(edge[2], 32);
}

/// The float run is another one, or at another place.
TEST_F(ReportTest, FindsTheFloatRunAgain) {
  expect_success(train("one/float", "--float --steps 40"));
  expect_success(
      miniqat({"calibrate", "float", "--data-dir", path("digits"), "--batches", "2", "--threads", "1", "--out", "ptq"},
              path("one")));
  const auto found = [&] { return report({"one/ptq"})["runs"][0]["float_run"].get<std::string>(); };
  EXPECT_EQ(found(), path("one/float"));
  // At the path that the run names lies a float run by now, but not that one.
  expect_success(train("float", "--float --steps 1"));
  const auto accuracy = [&](const char* run) { return json_of(path(run) / "summary.json")["test_accuracy"]; };
  ASSERT_NE(accuracy("float"), accuracy("one/float"));
  EXPECT_EQ(found(), path("one/float"));
  std::filesystem::remove_all(path("one/float"));
  EXPECT_EQ(found(), "") << "the run's own variables without quantizers";
}

TEST_F(ReportTest, TakesRunsInAnyState) {
  expect_success(train("float", "--float"));
  expect_success(program("calibrate float --batches 2 --threads 1 --out ptq"));
  expect_success(train("stopped", "--stop-at 4 --validation 8"));
  expect_success(train("begun", "--stop-at 4"));
  // As a process leaves it that is still at work.
  std::filesystem::remove(path("begun/summary.json"));
  place_.write("begun/metrics.jsonl", bytes_of(path("begun/metrics.jsonl")) + "{\"step\": 5, \"lo");
  expect_success(train("partly", "--scope conv1"));
  const Json data = report({"float", "ptq", "stopped", "begun", "partly"});
  ASSERT_EQ(data["runs"].size(), 5u);
  const Json &in_float = data["runs"][0], &ptq = data["runs"][1], &stopped = data["runs"][2], &begun = data["runs"][3];
  EXPECT_TRUE(in_float["comparison"].is_null());
  EXPECT_TRUE(in_float["layers"][0]["weights"].is_null());
  EXPECT_EQ(in_float["layers"][0]["float_weights"]["values"], 36);
  expect_equal_to_eval(named(in_float["answers"], "float"), {"float"});
  expect_equal_to_eval(named(ptq["answers"], "calibrated"), {"ptq"});
  EXPECT_EQ(ptq["curves"]["numbers"], Json::object());
  EXPECT_EQ(stopped["part"], "validation");
  EXPECT_EQ(named(stopped["answers"], "integers")["examples"], 8);
  EXPECT_TRUE(named(stopped["results"], "integers")["test_accuracy"].is_null()) << "nobody shall choose by these";
  EXPECT_EQ(stopped["listed"]["state"], "stopped at step 4");
  EXPECT_EQ(begun["listed"]["state"], "unfinished, at step 4");
  EXPECT_EQ(begun["machine"], stopped["summary"]["machine"]);
  EXPECT_EQ(in_float["machine"], in_float["summary"]["machine"]);
  EXPECT_EQ(begun["notes"][0].get<std::string>().find("the run in begun is unfinished: its checkpoint is of step 4"),
            0u)
      << begun["notes"];
  EXPECT_EQ(begun["curves"]["numbers"]["loss"].size(), 4u);
  const Json& partly = data["runs"][4];
  EXPECT_EQ(partly["notes"][0].get<std::string>().find("no integers: "), 0u) << partly["notes"];
  EXPECT_EQ(partly["answers"].size(), 2u);
  EXPECT_TRUE(partly["comparison"]["same_class"].is_number()) << "float beside the simulation";
  EXPECT_EQ(begun["graphs"]["before"]["nodes"].size(), in_float["graphs"]["before"]["nodes"].size());
}

/// What is not there is said, and the rest is shown.
TEST_F(ReportTest, SaysWhatIsMissing) {
  expect_success(train("run"));
  std::filesystem::rename(path("digits"), path("moved"));
  const Outcome outcome = program("report run --out report.html");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err.find("run: no pictures: "), 0u) << outcome.err;
  const Json run = report_data(path("report.html"))["runs"][0];
  EXPECT_EQ(run["answers"], Json::array());
  EXPECT_FALSE(run["layers"][0]["weights"].is_null());
  EXPECT_TRUE(run["layers"][0]["snr_alone_db"].is_null());
  EXPECT_EQ(report({"run", "--data-dir", "moved"})["runs"][0]["answers"].size(), 3u);
  // Other variables than those that were verified.
  expect_success(program("verify run --data-dir moved --no-runtimes --threads 1"));
  EXPECT_TRUE(report({"run", "--data-dir", "moved"})["runs"][0]["verification_is_current"]);
  expect_success(train("other", "--seed 2 --data-dir moved"));
  std::filesystem::copy_file(path("other/checkpoint.safetensors"), path("run/checkpoint.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(report({"run", "--data-dir", "moved"})["runs"][0]["verification_is_current"]);
}

/// A graph of `layers` layers of ten numbers, for the digits.
std::string deep_classifier(int layers) {
  Json nodes = {{{"name", "images"}, {"op", "Placeholder"}, {"attrs", {{"shape", {16, 8, 8, 1}}}}},
                {{"name", "flat"}, {"op", "Reshape"}, {"inputs", {"images"}}, {"attrs", {{"shape", {-1, 64}}}}}};
  std::string x = "flat";
  for (int i = 0; i < layers; ++i) {
    const std::string name = concat("fc", i);
    nodes.push_back({{"name", name + "/weights"},
                     {"op", "Variable"},
                     {"attrs", {{"shape", {i == 0 ? 64 : 10, 10}}, {"initializer", {{"type", "glorot_uniform"}}}}}});
    nodes.push_back({{"name", name + "/MatMul"}, {"op", "MatMul"}, {"inputs", {x, name + "/weights"}}});
    x = name + "/MatMul";
  }
  return Json{{"format", "miniqat.graph"}, {"version", 1}, {"nodes", nodes}, {"outputs", {x}}}.dump();
}

/// Layers times pictures stay below 125,000, and every figure says of how many pictures it is.
TEST_F(ReportTest, ANetworkOfVeryManyLayersAnswersTheFirstPictures) {
  place_.write("deep.json", deep_classifier(400));
  write_tiny_digits(place_, "many", 32, 1300);
  expect_success(train("run", {"--model", "deep.json", "--data-dir", "many", "--steps", "2"}));
  const Json run = report({"run"})["runs"][0];
  EXPECT_EQ(run["part_examples"], 1300);
  EXPECT_NE(run["notes"].dump().find("400 layers: for this page it has answered the first 312 of 1300 test pictures"),
            std::string::npos)
      << run["notes"];
  ASSERT_EQ(run["answers"].size(), 3u);
  expect_equal_to_eval(named(run["answers"], "trained"), {"run", "--examples", "312"});
  expect_equal_to_eval(named(run["answers"], "integers"), {"run", "--integer", "--examples", "312"});
  const Json own = named(run["results"], "trained"), integers = named(run["results"], "integers");
  EXPECT_EQ(own["test_accuracy"], json_of(path("run/summary.json"))["test_accuracy"]);
  EXPECT_EQ(own["first_examples"], nullptr);
  EXPECT_EQ(integers["test_accuracy"], named(run["answers"], "integers")["accuracy"]);
  EXPECT_EQ(integers["first_examples"], 312);
  const Json all = report({"run", "--examples", "1300"})["runs"][0];
  EXPECT_EQ(all["answers"][0]["examples"], 1300);
  EXPECT_EQ(named(all["results"], "integers")["first_examples"], nullptr);
}

TEST_F(ReportTest, RefusesWhatItCannotRead) {
  expect_success(train("run"));
  expect_error(program("report run none --out report.html"), 1, {"none holds no run"});
  expect_error(program("report run --data-dir none --out report.html"), 1, {"none"});
  expect_error(program("report run --sensitivity run --out report.html"), 1, {"sensitivity.json"});
  expect_error(program("report run --sensitivity run/config.json --out report.html"), 1,
               {"config.json", "not a file of `miniqat sensitivity`"});
  expect_error(program("report run --out none/report.html"), 1, {"none/report.html"});
  place_.write("other/config.json", "{}");
  expect_error(program("report other --out report.html"), 1, {"other/config.json"});
  place_.write("broken/config.json", "{");
  expect_error(program("report broken --out report.html"), 1, {"broken/config.json"});
  EXPECT_FALSE(std::filesystem::exists(path("report.html")));
}

class ReportCommandTest : public TinyTaskTest {
 protected:
  std::vector<nlohmann::json> reported(const Arguments& runs) const {
    const Outcome outcome = program("report --out report.html --threads 1 --pictures 0" + runs);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return report_data(path("report.html"))["runs"];
  }

  /// As pasted into a shell, once the run is somewhere else.
  void expect_made_again(const std::string& run) const {
    const std::string command = reported({run})[0]["command"];
    const std::string first = run + "-first";
    std::filesystem::rename(path(run), path(first));
    const std::string folder = std::filesystem::path(program_path()).parent_path().string();
    const Outcome outcome =
        Program(Program::Line{{"/bin/sh", "-c", concat("PATH='", folder, "':$PATH; ", command)}}, place_.path()).wait();
    ASSERT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
    EXPECT_EQ(checkpoint_bytes(run), checkpoint_bytes(first)) << command;
  }
};

TEST_F(ReportCommandTest, MakesATrainingAgain) {
  place_.write("bits.json", R"({"conv1": {"weight_bits": 2, "activation_bits": 8}, "*": 6})");
  expect_success(
      train("it's $HOME & more",
            "--bits-config bits.json --stop-at 7 --seed 3 --validation 8 --full-range-weights=false --optimizer adam"));
  expect_made_again("it's $HOME & more");
}

/// The schedule of the first steps is that of the shorter run.
TEST_F(ReportCommandTest, MakesALongerTrainingAgain) {
  expect_success(train("run", {"--steps", "0", "--epochs", "1", "--stop-at", "2"}));
  for (const Arguments& more : {Arguments{"--epochs", "2"}, {"--epochs", "4", "--stop-at", "30"}, {}, {}})
    expect_success(resume("run", more));
  const std::string go_on = " && miniqat train --resume --log-every 1 --out run";
  const std::string command = reported({"run"})[0]["command"];
  EXPECT_TRUE(command.ends_with(concat(" --stop-at 2", go_on, " --epochs 2", go_on, " --epochs 4 --stop-at 30", go_on)))
      << command << "\nthe last --resume found a complete run";
  expect_made_again("run");
}

TEST_F(ReportCommandTest, NumbersRunsOfOneName) {
  expect_success(train("a/run"));
  expect_success(train("b/run", "--seed 2"));
  const auto names = [&](const Arguments& runs) {
    Arguments found;
    for (const nlohmann::json& run : reported(runs)) found.push_back(run["name"]);
    return found;
  };
  EXPECT_EQ(names({"a/run", "b/run"}), (Arguments("a/run b/run")));
  EXPECT_EQ(names({"a/run", "b/run", "a/run"}), (Arguments{"a/run (1)", "b/run", "a/run (2)"}));
}

}  // namespace
}  // namespace miniqat::testing::report_test
