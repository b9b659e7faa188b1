// `miniqat bench --compare`: files of `bench`, and kernels of one file, beside each other; on a busy machine, too.

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/text/json.h"
#include "tests/cli/program.h"

namespace miniqat::testing::bench_compare_test {
namespace {

using Json = nlohmann::json;
using Rounds = std::vector<double>;

/// A case of a file of `bench`.
Json case_of(const std::string& kernel, const Rounds& rounds, bool quiet) {
  return {{"kernel", "forward"}, {"by", kernel}, {"layout", "per tensor"}, {"bits", 8},     {"channels", 1},
          {"elements", 10},      {"threads", 1}, {"rounds", rounds},       {"quiet", quiet}};
}

/// Such a file with these cases, or others of another list.
Json file_with(const Json& cases, const char* list = "kernels") {
  return {{"version", "0.1"},
          {"date", "2026-01-01T00:00:00Z"},
          {"compiler", "c"},
          {"machine", {{"cpu", "m"}, {"instruction_set", "avx2"}}},
          {list, cases}};
}

/// One case by `kernel`, whose rounds lie around `seconds`.
Json quiet_file(const std::string& kernel, double seconds) {
  Rounds rounds;
  for (int i = 0; i < 9; ++i) rounds.push_back(seconds * (1 + 0.001 * i));
  return file_with(Json::array({case_of(kernel, rounds, true)}));
}

class BenchCompareTest : public ProgramTest {
 protected:
  Outcome compare(const Arguments& files) const { return program("bench --compare" + files); }
  /// A file from a machine that others used: one case by each kernel, on a speed that wanders.
  void write_busy(const std::string& name, const std::vector<std::pair<std::string, double>>& kernels,
                  double slow = 1) {
    Json cases = Json::array();
    for (const auto& [kernel, seconds] : kernels) {
      Rounds rounds;
      for (int i = 0; i < 21; ++i) rounds.push_back(seconds * slow * (1 + i * 7 % 11));
      cases.push_back(case_of(kernel, rounds, false));
    }
    place_.write(name, file_with(cases).dump());
  }
  /// A file of `bench --loaded`, whose rounds of both rows are around these images/s.
  void write_loaded(const std::string& name, double all_threads, double one_thread) {
    const auto around = [](double speed) {
      return Json{speed, speed * 1.02, speed * 0.98, speed * 1.01, speed * 0.99};
    };
    Json rows = Json::array();
    for (const char* neighbours : {"none", "own sessions"})
      rows.push_back({{"model", "lenet5"},
                      {"neighbours", neighbours},
                      {"batch", 128},
                      {"threads", 2},
                      {"images_per_second_rounds", around(all_threads)},
                      {"one_thread_rounds", around(one_thread)},
                      {"quiet", true}});
    place_.write(name, file_with(rows, "loaded").dump());
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(BenchCompareTest, FilesAreCompared) {
  Json with_commit = quiet_file("old", 1e-3);
  with_commit["commit"] = "1234abc-dirty";
  with_commit["flags"] = "-O3";
  place_.write("a.json", with_commit.dump());
  place_.write("b.json", quiet_file("new", 0.5e-3).dump());
  const Outcome outcome = expect_success(compare("a.json b.json"));
  expect_text(outcome.out, {"forward, per tensor, 8 bits, 10 elements, 1 thread", "old -> new", "2.000", "B faster",
                            "1 case: B faster in 1", "A  a.json: 0.1 (1234abc-dirty), 2026-01-01",
                            "B  b.json: 0.1, 2026", "Flags of the compiler differ:\nA  -O3\nB  unknown\n"});
}

TEST_F(BenchCompareTest, AComparisonIsJsonOrAStatus) {
  place_.write("a.json", quiet_file("k", 1e-3).dump());
  place_.write("b.json", quiet_file("k", 2e-3).dump());
  const Json json = Json::parse(expect_success(compare("a.json b.json --json")).out);
  EXPECT_EQ(json["a"]["file"], "a.json");
  ASSERT_EQ(json["cases"].size(), 1u);
  EXPECT_EQ(json["cases"][0]["case"], "forward, per tensor, 8 bits, 10 elements, 1 thread");
  EXPECT_EQ(json["cases"][0]["b_is"], "slower");
  EXPECT_NEAR(json["cases"][0]["speed"], 0.5, 1e-6);
  EXPECT_EQ(json["cases"][0]["kernel"], "forward");
  EXPECT_EQ(json["cases"][0]["layout"], "per tensor");
  for (const auto& [key, value] :
       std::map<std::string, int>{{"bits", 8}, {"channels", 1}, {"elements", 10}, {"threads", 1}})
    EXPECT_EQ(json["cases"][0][key], value) << key;
  EXPECT_EQ(json["a"]["machine"]["cpu"], "m");
  const Outcome slower = compare("a.json b.json --fail-if-slower");
  EXPECT_EQ(slower.status, 1);
  expect_text(slower.err, {"b.json is slower than a.json in 1 case\n"});
  expect_text(slower.out, {"B slower"});
  expect_success(compare("b.json a.json --fail-if-slower"));
}

TEST_F(BenchCompareTest, MalformedFilesAreNamed) {
  place_.write("good.json", quiet_file("k", 1).dump());
  const auto refuses = [&](const std::string& text, const std::vector<std::string>& parts) {
    place_.write("bad.json", text);
    expect_error(compare("good.json bad.json"), 1, parts);
  };
  refuses("{", {"bad.json", "line 1"});
  refuses("[]", {"bad.json", "object"});
  refuses("{}", {"bad.json", "machine"});
  Json json = quiet_file("k", 1);
  const auto changed = [&](const char* key, const Json& value) {
    Json copy = json;
    copy["kernels"][0][key] = value;
    return copy.dump();
  };
  refuses(changed("rounds", Json::array()), {"bad.json: kernels[0]", "rounds", "seconds"});
  refuses(changed("rounds", {1, -1}), {"kernels[0]", "rounds"});
  refuses(changed("threads", "two"), {"kernels[0]", "threads", "whole number"});
  refuses(changed("elements", 11), {"no case in common"});
  json["kernels"].push_back(json["kernels"][0]);
  refuses(json.dump(), {"kernels[1]", "twice"});
  json["kernels"][0].erase("rounds");
  refuses(json.dump(), {"kernels[0]", "has no \"rounds\""});
  expect_error(compare("good.json none.json"), 1, {"none.json"});
}

TEST_F(BenchCompareTest, KernelsOfOneFileAreComparedWhereTheMachineIsBusy) {
  write_busy("one.json", {{"miniqat", 1e-3}, {"my@old", 0.8e-3}, {"my@new", 0.4e-3}});
  const Outcome outcome = expect_success(compare({"one.json"}));
  expect_text(outcome.out, {"A and B  one.json: ", "my@old -> my@new", "2.000", "2.000-2.000 (21)", "B faster",
                            "3 cases: B faster in 3, slower in 0, as memcpy in 0, within noise in 0, undecided in 0."});
  write_busy("slow.json", {{"my@old", 0.4e-3}, {"my@new", 0.8e-3}});
  expect_error(compare({"slow.json", "--fail-if-slower"}), 1, {"slow.json: the second kernel is slower", "1 case"});
  write_busy("alone.json", {{"my", 1}});
  expect_error(compare({"alone.json"}), 1, {"alone.json has no two kernels of one case"});
}

TEST_F(BenchCompareTest, FilesInTurnsDecideWhereTwoDoNot) {
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

TEST_F(BenchCompareTest, FilesOfLoadedAreCompared) {
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
}  // namespace miniqat::testing::bench_compare_test
