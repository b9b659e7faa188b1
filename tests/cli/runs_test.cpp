// `miniqat runs`: a table of runs, finished, unfinished and broken ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::runs_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class RunsTest : public TinyTaskTest {
 protected:
  Json list(const std::string& folder = ".") const {
    return Json::parse(expect_success(program({"runs", folder, "--json"})).out);
  }
  Json find(const Json& runs, const std::string& name) const {
    const auto found = std::ranges::find_if(runs, [&](const Json& run) { return run["name"] == name; });
    EXPECT_NE(found, runs.end()) << name << " in " << runs;
    return found == runs.end() ? Json() : *found;
  }
};

TEST_F(RunsTest, EveryKindOfRunTellsItsCommand) {
  expect_success(train("runs/float", "--float"));
  expect_success(train("runs/w4", "--weight-bits 4 --per-channel --init-checkpoint runs/float"));
  expect_success(program("calibrate runs/float --activation-bits 6 --batches 2 --out runs/ptq --threads 1"));
  const Json runs = list("runs");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["name"], "float") << "the newest comes last";
  EXPECT_EQ(runs[2]["name"], "ptq");
  const Json w4 = runs[1], summary = Json::parse(bytes_of(path("runs/w4/summary.json")));
  EXPECT_EQ(w4["quantization"], "W4A8 per channel learned symmetric weights");
  EXPECT_EQ(w4["bits"], summary["bits"]);
  EXPECT_EQ(w4["test_accuracy"], summary["test_accuracy"]);
  EXPECT_EQ(w4["seconds"], summary["seconds"]);
  EXPECT_EQ(w4["state"], "complete");
  EXPECT_EQ(w4["complete"], true);
  EXPECT_EQ(w4["command"],
            "miniqat train --model tiny.json --dataset mnist --data-dir digits --steps 12 --threads 1 --log-every 1 "
            "--out runs/w4 --weight-bits 4 --per-channel --init-checkpoint runs/float");
  EXPECT_EQ(w4["commands"], Json::parse(bytes_of(path("runs/w4/commands.json"))));
  EXPECT_EQ(w4["commands"][0]["directory"], fs::canonical(place_.path()).string());
  EXPECT_EQ(runs[2]["command"],
            "miniqat calibrate runs/float --activation-bits 6 --batches 2 --out runs/ptq --threads 1");
  const Outcome table = expect_success(program("runs runs"));
  EXPECT_TRUE(table.out.starts_with("run    model      data set  bits ")) << table.out;
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 4);
}

/// Where it is another run, the commands that made the first are there, too.
TEST_F(RunsTest, ReestimateIsALaterCommand) {
  expect_success(train("norm", {"--model", "norm.json"}));
  const std::string trained = list("norm")[0]["command"];
  expect_success(program({"reestimate", "norm", "--batches", "2", "--out", "other"}));
  expect_success(program({"reestimate", "norm", "--batches", "3"}));
  EXPECT_EQ(list("other")[0]["command"], trained + " && miniqat reestimate norm --batches 2 --out other");
  EXPECT_EQ(list("norm")[0]["command"], trained + " && miniqat reestimate norm --batches 3");
}

/// Of an earlier version; and what is damaged.
TEST_F(RunsTest, ARunWithoutItsCommandIsListedAllTheSame) {
  expect_success(train("old"));
  fs::remove(path("old/commands.json"));
  Json run = list("old")[0];
  EXPECT_EQ(run["state"], "complete");
  EXPECT_EQ(run["command"], "");
  EXPECT_EQ(run["commands"], Json::array());
  EXPECT_TRUE(program("runs old --commands").out.ends_with(" s  -\n"));
  expect_success(resume("old", {"--steps", "14"}));
  EXPECT_EQ(list("old")[0]["command"], "miniqat train --resume --log-every 1 --out old --steps 14");
  place_.write("old/commands.json", "{}");
  run = list("old")[0];
  EXPECT_EQ(run["state"], "complete");
  EXPECT_EQ(run["command"], "(old/commands.json: the file must be a list, is {})");
}

TEST_F(RunsTest, QuantizeTellsItsTimeAndItsCommandAndFewLines) {
  expect_success(train("float", "--float"));
  const Outcome made = expect_success(program("quantize float --out best --steps 8 --batches 7 --threads 1"));
  const auto lines = [&](const std::string& start) {
    std::istringstream text(made.out);
    int count = 0;
    for (std::string line; std::getline(text, line);) count += line.starts_with(start);
    return count;
  };
  EXPECT_LE(lines("step "), 3) << "a run of milliseconds needs no line for each step\n" << made.out;
  EXPECT_GE(lines("step "), 1) << made.out;
  EXPECT_EQ(lines("batch "), 4) << "2, 4, 6 and 7 of 7\n" << made.out;
  const auto seconds = [&](const std::string& run) {
    return Json::parse(bytes_of(path(run) / "summary.json"))["seconds"].get<double>();
  };
  const Json best = find(list(), "best");
  EXPECT_EQ(best["command"], "miniqat quantize float --out best --steps 8 --batches 7 --threads 1");
  EXPECT_NEAR(best["seconds"], seconds("best/calibrated") + seconds("best/trained"), 1e-9);
}

TEST_F(RunsTest, UnfinishedAndBrokenRunsAreSaid) {
  expect_success(train("stopped", "--stop-at 5"));
  for (const char* copy : {"killed", "begun", "nan", "broken", "unknown"}) fs::copy(path("stopped"), path(copy));
  for (const char* copy : {"killed", "begun", "nan"}) fs::remove(path(copy) / "summary.json");
  fs::remove(path("begun/metrics.jsonl"));
  place_.write("nan/metrics.jsonl",
               "{\"step\": 5, \"loss\": 1}\n{\"step\": 6, \"failure\": \"the loss became NaN\"}\n");
  place_.write("broken/config.json", "{\"model\": ");
  place_.write("unknown/config.json", R"({"model": "lenet", "dataset": "mnist", "new_setting": 3})");
  place_.write("elsewhere/config.json", R"({"name": "of another program"})");
  place_.write("plan/quantize.json", R"({"run": "stopped", "training": {"model": "lenet", "dataset": "mnist"}})");
  const Json runs = list();
  EXPECT_EQ(runs.size(), 7u) << runs;
  EXPECT_EQ(find(runs, "stopped")["state"], "stopped at step 5");
  EXPECT_EQ(find(runs, "killed")["state"], "unfinished, at step 5");
  EXPECT_EQ(find(runs, "killed")["quantization"], "W8A8");
  EXPECT_EQ(find(runs, "begun")["state"], "unfinished, at step 0");
  EXPECT_EQ(find(runs, "nan")["state"], "failed: the loss became NaN");
  EXPECT_EQ(find(runs, "plan")["state"], "unfinished, no network chosen yet");
  for (const char* name : {"broken", "unknown"})
    EXPECT_TRUE(find(runs, name)["state"].get<std::string>().starts_with("broken: ")) << find(runs, name);
  expect_text(find(runs, "unknown")["state"].get<std::string>(), {"new_setting"});
  for (const Json& run : runs) EXPECT_EQ(run["complete"], false) << run;
  expect_text(expect_success(program("runs . --commands")).out, {"[unfinished, at step 5] miniqat train "});
  expect_text(expect_success(program("runs .")).out, {"\nkilled: unfinished, at step 5\n", "\nbroken: broken: "});
}

/// The columns of the widest line.
std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST_F(RunsTest, TheTableFitsTheTerminal) {
  const std::string name = "a-run-with-a-long-name-as-experiments-in-many-settings-have";
  expect_success(train(name, "--weight-bits 4 --activation-bits 4 --ranges learned --per-channel --steps 4"));
  expect_success(train("other", "--float --stop-at 5"));
  const std::string narrow = expect_success(program("runs .")).out;
  EXPECT_EQ(widest_line(narrow), 80u) << narrow;
  expect_text(narrow, {"a-run-", "tiny.json", "mnist", "\nother: stopped at step 5\n"});
  {
    const EnvironmentVariable columns("COLUMNS", "300");
    expect_text(expect_success(program("runs .")).out, {name});
  }
  expect_text(expect_success(program("runs . --commands")).out, {name, "miniqat train --model tiny.json"});
  expect_error(program("runs . --commands --json"), 2, {"--commands has no effect with --json"});
}

TEST_F(RunsTest, AFolderWithoutRuns) {
  expect_success(train("one", "--float"));
  EXPECT_EQ(list("one")[0]["name"], "one");
  EXPECT_EQ(list("one/")[0]["name"], "one");
  EXPECT_EQ(expect_success(program("runs digits")).out, "no runs in digits\n");
  EXPECT_EQ(list("digits"), Json::array());
  expect_error(program("runs nowhere"), 1, {"nowhere is not a folder"});
}

TEST_F(RunsTest, WithoutAFolderThoseBelowRuns) {
  const Outcome none = program("runs");
  EXPECT_EQ(none.status, 2);
  expect_text(none.err, {"there is no folder runs here", "miniqat runs DIR", "this makes one: miniqat train"});
  expect_success(train("runs/one", "--float"));
  const Outcome table = expect_success(program("runs"));
  EXPECT_EQ(table.out, program("runs runs").out);
  expect_text(table.out, {"\none "});
  const Json runs = Json::parse(program("runs --json").out);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["name"], "one");
}

TEST_F(RunsTest, SeveralFoldersAreOneTable) {
  for (const char* run : {"a/one", "b/one", "a/two"}) expect_success(train(run, "--float"));
  // Also a run itself, and the folder of another that is there already.
  const Outcome both = expect_success(program("runs a b/one ./a/ --json"));
  std::vector<std::string> names;
  for (const Json& run : Json::parse(both.out)) names.push_back(run["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"a/one", "b/one", "a/two"})) << "the newest of all comes last";
  EXPECT_EQ(std::ranges::count(expect_success(program("runs b a")).out, '\n'), 4);
  expect_error(program("runs a nowhere"), 1, {"nowhere is not a folder"});
  EXPECT_EQ(expect_success(program("runs digits digits")).out, "no runs in digits, digits\n");
}

}  // namespace
}  // namespace miniqat::testing::runs_test
