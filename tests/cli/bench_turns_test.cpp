// `miniqat bench` for those who compare kernels: CSV, kernels per tensor alone, and comparisons on a busy machine.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/text/json.h"
#include "tests/cli/program.h"

namespace miniqat::testing::bench_turns_test {
namespace {

using Json = nlohmann::json;

class BenchTurnsTest : public ProgramTest {
 protected:
  Outcome bench(const Arguments& more) const {
    const Outcome outcome = program("bench --quick --threads 1 --elements 1000" + more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome;
  }
  Outcome compare(const Arguments& files) const { return program("bench --compare" + files); }
  static Json file_with(const std::string& rows) {
    return {{"version", "0.1"},
            {"date", "2026-01-01T00:00:00Z"},
            {"compiler", "c"},
            {"machine", {{"cpu", "m"}, {"instruction_set", "avx2"}}},
            {rows, Json::array()}};
  }
  /// A file of `bench` from a machine that others used: one case by each kernel, on a speed that wanders.
  void write_busy(const std::string& name, const std::vector<std::pair<std::string, double>>& kernels,
                  double slow = 1) {
    Json json = file_with("kernels");
    for (const auto& [kernel, seconds] : kernels) {
      Json rounds = Json::array();
      for (int i = 0; i < 21; ++i) rounds.push_back(seconds * slow * (1 + i * 7 % 11));
      json["kernels"].push_back({{"kernel", "forward"},
                                 {"by", kernel},
                                 {"layout", "per tensor"},
                                 {"bits", 8},
                                 {"channels", 1},
                                 {"elements", 10},
                                 {"threads", 1},
                                 {"rounds", rounds},
                                 {"quiet", false}});
    }
    place_.write(name, json.dump());
  }

  /// A file of `bench --loaded`, whose rounds of both rows are around these images/s.
  void write_loaded(const std::string& name, double all_threads, double one_thread) {
    const auto around = [](double speed) {
      return Json{speed, speed * 1.02, speed * 0.98, speed * 1.01, speed * 0.99};
    };
    Json json = file_with("loaded");
    for (const char* neighbours : {"none", "own sessions"})
      json["loaded"].push_back({{"model", "lenet5"},
                                {"neighbours", neighbours},
                                {"batch", 128},
                                {"threads", 2},
                                {"images_per_second_rounds", around(all_threads)},
                                {"one_thread_rounds", around(one_thread)},
                                {"quiet", true}});
    place_.write(name, json.dump());
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(BenchTurnsTest, CsvHasTheRowsOfTheJsonAndNothingElse) {
  const Outcome outcome = bench("--kernel forward,plain_loop --csv --out b.json");
  const std::vector<std::string> lines = lines_of(outcome.out);
  const Json rows = Json::parse(bytes_of(path("b.json")))["kernels"];
  ASSERT_EQ(lines.size(), rows.size() + 1) << outcome.out;
  const auto commas = [](const std::string& line) { return std::ranges::count(line, ','); };
  for (const std::string& line : lines) EXPECT_EQ(commas(line), commas(lines[0])) << line;
  EXPECT_TRUE(lines[0].starts_with("row,kernel,by,layout,")) << lines[0];
  expect_text(lines[0], {",elements,", ",nanoseconds_an_element,", ",of_miniqat_interval_low,", ",cpu,"});
  EXPECT_EQ(lines[0].find("rounds"), std::string::npos);
  EXPECT_TRUE(lines[3].starts_with("kernel,forward,miniqat,per tensor,")) << lines[3];
  for (const Json& row : rows)
    EXPECT_NEAR(row["nanoseconds_an_element"].get<double>(),
                1e9 * row["seconds"].get<double>() / row["elements"].get<double>(), 1e-9);
}

TEST_F(BenchTurnsTest, KernelsPerTensorAlone) {
  const Json result = Json::parse(bench("--per-tensor --json").out);
  EXPECT_FALSE(result.contains("steps"));
  std::set<std::string> kernels;
  for (const Json& row : result["kernels"]) {
    EXPECT_EQ(row["channels"], 1);
    EXPECT_NE(row["layout"], "per channel");
    kernels.insert(row["kernel"]);
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"memcpy", "read", "forward", "forward_in_place", "forward_mask",
                                            "observe_forward", "backward", "backward_learned"}));
}

TEST_F(BenchTurnsTest, ATableOfSeveralKernelsEndsInWords) {
  expect_text(bench("--kernel forward,plain_loop --per-tensor --elements 10000").out,
              {" ns/element ", " 95% of median ", "plain_loop beside miniqat: faster in "});
  EXPECT_EQ(bench("--kernel forward --per-tensor").out.find("95% of median"), std::string::npos);
}

TEST_F(BenchTurnsTest, KernelsOfOneFileAreComparedWhereTheMachineIsBusy) {
  write_busy("one.json", {{"miniqat", 1e-3}, {"my@old", 0.8e-3}, {"my@new", 0.4e-3}});
  const Outcome outcome = expect_success(compare({"one.json"}));
  expect_text(outcome.out, {"A and B  one.json: ", "my@old -> my@new", "2.000", "2.000-2.000 (21)", "B faster",
                            "3 cases: B faster in 3, slower in 0, as memcpy in 0, within noise in 0, undecided in 0."});
  write_busy("slow.json", {{"my@old", 0.4e-3}, {"my@new", 0.8e-3}});
  expect_error(compare({"slow.json", "--fail-if-slower"}), 1, {"slow.json: the second kernel is slower", "1 case"});
  write_busy("alone.json", {{"my", 1}});
  expect_error(compare({"alone.json"}), 1, {"alone.json has no two kernels of one case"});
}

TEST_F(BenchTurnsTest, FilesInTurnsDecideWhereTwoDoNot) {
  Arguments a, b;
  for (int i = 0; i < 6; ++i) {
    a.push_back("a" + std::to_string(i) + ".json");
    b.push_back("b" + std::to_string(i) + ".json");
    write_busy(a.back(), {{"k", 1e-3}}, 1 + i);
    write_busy(b.back(), {{"k", 2e-3}}, 1 + i);
  }
  expect_text(compare({a[0], b[0]}).out, {"not quiet", "undecided in 1", "take turns"});
  Arguments all = a + b;
  const Outcome turns = compare(all);
  expect_text(turns.out, {"A  a0.json and 5 more: ", "B  b0.json and 5 more: ", "0.500-0.500 (6)", "B slower"});
  all.emplace_back("--json");
  const Json json = Json::parse(compare(all).out);
  EXPECT_EQ(json["a"]["files"], a);
  EXPECT_EQ(json["cases"][0]["turns"], 6);
  EXPECT_EQ(json["cases"][0]["b_is"], "slower");
  EXPECT_EQ(json["cases"][0]["speed_interval"].size(), 2u);
  EXPECT_FALSE(json["cases"][0].contains("p"));
  all.back() = "--csv";
  const std::vector<std::string> lines = lines_of(compare(all).out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("row,case,kernel,")) << lines[0];
  expect_text(lines[1], {",slower"});
}

TEST_F(BenchTurnsTest, FilesOfLoadedAreCompared) {
  write_loaded("a.json", 4000, 3000);
  write_loaded("b.json", 2000, 3000);
  const Outcome outcome = expect_success(compare("a.json b.json"));
  // 128 pictures at 4000 a second take 32 ms.
  expect_text(outcome.out, {"lenet5, W8A8, neighbours: own sessions, batch 128, 2 threads", "32000.00 (", "64000.00 (",
                            " 0.500 ", "B slower", "neighbours: none, batch 128, 1 thread ",
                            "4 cases: B faster in 0, slower in 2, as memcpy in 0, within noise in 2, undecided in 0."});
  const std::vector<std::string> lines = lines_of(compare("a.json b.json --csv").out);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].starts_with("row,case,model,neighbours,batch,threads,")) << lines[0];
  expect_text(lines[1], {",lenet5,none,128,2,"});
  expect_text(lines[2], {",lenet5,none,128,1,"});
  place_.write("a.csv", "row,model\nloaded,lenet5\n");
  expect_error(compare("a.csv b.json"), 1, {"a.csv", "JSON of bench --out", "not CSV"});
}

}  // namespace
}  // namespace miniqat::testing::bench_turns_test
