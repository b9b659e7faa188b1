// `miniqat bench` on sizes that take no time: whether tables, CSV and JSON are complete. No test asserts a time.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "core/engine/session.h"
#include "core/text/json.h"
#include "tests/cli/tiny_task.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing::bench_test {
namespace {

using Json = nlohmann::json;

/// Those whose working directory is the folder.
int processes_of(const std::filesystem::path& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::error_code error;
    count += std::filesystem::read_symlink(entry.path() / "cwd", error) == std::filesystem::canonical(folder) ? 1 : 0;
  }
  return count;
}

class BenchTest : public TinyTaskTest {
 protected:
  /// stderr may say that the machine is not quiet, and nothing else.
  Outcome bench(const Arguments& more) const {
    Outcome outcome = started("bench --quick --threads 1 --out b.json" + more, place_.path());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.err.empty() || outcome.err.find("not quiet") != std::string::npos) << outcome.err;
    return outcome;
  }
  /// The quartiles are where a median may be.
  static void expect_around(const Json& row, const std::string& ratio) {
    const Json& quartiles = row[ratio + "_quartiles"];
    ASSERT_EQ(quartiles.size(), 2u) << row;
    EXPECT_LE(quartiles[0], row[ratio]) << row;
    EXPECT_GE(quartiles[1], row[ratio]) << row;
  }
  Json json() const { return Json::parse(bytes_of(path("b.json"))); }
};

TEST_F(BenchTest, KernelsAreMeasuredAtEverySizeAndLayoutOnANamedMachine) {
  const Outcome outcome = bench("--kernels-only --elements 640,1000");
  const Json result = json();
  EXPECT_FALSE(result.contains("steps"));
  std::set<std::string> rows;
  for (const Json& row : result["kernels"]) {
    rows.insert(row["kernel"].get<std::string>() + "/" + row["layout"].get<std::string>() + "/" +
                std::to_string(row["elements"].get<int>()));
    for (const char* figure : {"seconds", "gigabytes_per_second", "elements_per_nanosecond", "of_memcpy", "of_roof"})
      EXPECT_GT(row[figure], 0) << row;
    expect_around(row, "of_memcpy");
    expect_around(row, "seconds");
    EXPECT_GE(row["rounds"].size(), 3u);
    expect_text(outcome.out, {"\n" + row["kernel"].get<std::string>() + " "});
  }
  std::set<std::string> expected;
  for (const char* size : {"/640", "/1000"}) {
    expected.insert(std::string("memcpy/") + size);
    expected.insert(std::string("read/") + size);
    expected.insert(std::string("backward/per tensor") + size);
    for (const char* kernel : {"forward", "forward_in_place", "forward_mask", "observe_forward", "backward_learned"})
      for (const char* layout : {"/per tensor", "/per channel"}) expected.insert(std::string(kernel) + layout + size);
  }
  EXPECT_EQ(rows, expected);
  expect_text(outcome.out, {"more than 1 is possible there."});
  EXPECT_EQ(outcome.out.find("95% of median"), std::string::npos) << "ours beside nobody's";
  EXPECT_EQ(result["roof"].size(), 1u);
  EXPECT_GT(result["roof"][0]["operations_per_second"], 0);
  EXPECT_EQ(result["roof"][0]["copy"].size(), 1u) << "x and y fit into the first cache";

  const Json& machine = result["machine"];
  for (const char* key : {"version", "commit", "date", "compiler", "flags", "thread_counts"})
    EXPECT_TRUE(result.contains(key)) << key;
  for (const char* key :
       {"cpu", "cores", "instruction_set", "onednn", "threads", "caches", "cpu_quota", "memory_bytes", "load", "quiet"})
    EXPECT_TRUE(machine.contains(key)) << key;
  EXPECT_EQ(machine["threads"], 1);
  const std::string commit = result["commit"];
  expect_text(outcome.out,
              {"\nminiqat " + result["version"].get<std::string>() + (commit.empty() ? ", " : " (" + commit + "), ")});
  for (const char* key : {"cpu", "instruction_set", "onednn"})
    expect_text(outcome.out, {machine[key].get<std::string>()});
  expect_success(train("run", "--float --steps 1"));
  EXPECT_EQ(Json::parse(bytes_of(path("run/machine.json")))["commit"], commit) << "a run names it, too";
}

TEST_F(BenchTest, CsvHasTheRowsOfTheJsonAndNothingElse) {
  std::istringstream text(bench("--per-tensor --csv --elements 1000").out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const Json result = json(), rows = result["kernels"];
  ASSERT_EQ(lines.size(), rows.size() + 1);
  const auto commas = [](const std::string& line) { return std::ranges::count(line, ','); };
  for (const std::string& line : lines) EXPECT_EQ(commas(line), commas(lines[0])) << line;
  EXPECT_TRUE(lines[0].starts_with("row,kernel,by,layout,")) << lines[0];
  expect_text(lines[0], {",elements,", ",nanoseconds_an_element,", ",cpu,"});
  EXPECT_EQ(lines[0].find("rounds"), std::string::npos);
  EXPECT_TRUE(lines[3].starts_with("kernel,forward,miniqat,per tensor,")) << lines[3];
  EXPECT_FALSE(result.contains("steps"));
  std::set<std::string> kernels;
  for (const Json& row : rows) {
    EXPECT_NEAR(row["nanoseconds_an_element"].get<double>(),
                1e9 * row["seconds"].get<double>() / row["elements"].get<double>(), 1e-9);
    EXPECT_EQ(row["channels"], 1);
    EXPECT_NE(row["layout"], "per channel");
    kernels.insert(row["kernel"]);
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"memcpy", "read", "forward", "forward_in_place", "forward_mask",
                                            "observe_forward", "backward", "backward_learned"}));
}

TEST_F(BenchTest, StepsAreMeasuredInFloatAndQuantizedAndWithBatchNormInEveryPhase) {
  const Outcome outcome = bench("--steps-only --batch-size 2 --models lenet5,lenet5,lenet_bn");
  const Json result = json();
  EXPECT_FALSE(result.contains("kernels"));
  std::vector<std::string> what;
  for (const Json& row : result["steps"]) {
    what.push_back(row["model"].get<std::string>() + " " + row["what"].get<std::string>());
    EXPECT_EQ(row["batch"], 2);
    for (const char* figure : {"seconds", "images_per_second", "over_float", "arena_bytes"}) EXPECT_GT(row[figure], 0);
    expect_around(row, "over_float");
  }
  const auto ends_in = [](const std::string& ending) {
    return [ending](const std::string& row) { return row.ends_with(ending); };
  };
  // Float, W8A8 and W4A4, of both networks.
  EXPECT_EQ(std::erase_if(what, ends_in(" in bfloat16")), has_bfloat16_products() ? 6u : 0u);
  EXPECT_EQ(std::erase_if(what, ends_in(" in int8")), has_int8_products() ? 4u : 0u);
  EXPECT_EQ(std::erase_if(what, ends_in(" W8A8, on integers")), has_int8_products() ? 2u : 0u);
  EXPECT_EQ(std::erase(what, "lenet_bn W8A8, tf, on integers"), has_int8_products() ? 1u : 0u);
  EXPECT_EQ(what, (std::vector<std::string>{"lenet5 float", "lenet5 W8A8", "lenet5 W4A4, learned ranges",
                                            "lenet5 W4A4, learned, on integers", "lenet_bn float",
                                            "lenet_bn W8A8, before quant_delay", "lenet_bn W8A8, --bn-fold single",
                                            "lenet_bn W8A8, --bn-fold tf", "lenet_bn W8A8, after the BN freeze",
                                            "lenet_bn W4A4, learned, single", "lenet_bn W4A4, learned, on integers"}));
  EXPECT_EQ(result["steps"][0]["over_float"], 1.0);
  ASSERT_EQ(result["disturbances"].size(), 2u);
  const Json& disturbance = result["disturbances"][0];
  EXPECT_EQ(disturbance["model"], "lenet5");
  EXPECT_EQ(disturbance["batch"], 2);
  EXPECT_EQ(outcome.err.find("not quiet while measuring training steps of lenet5") != std::string::npos,
            !disturbance["reasons"].empty())
      << outcome.err;
  expect_text(outcome.out, {"\nlenet5 "});
}

// Times are not asserted, but that the neighbours are there while it measures and gone at the end. The figures by
// themselves: tests/bench/bench_parts_test.cpp.
TEST_F(BenchTest, LoadedMeasuresBesideNeighboursAndEndsThem) {
  if (!tries_all_cases()) GTEST_SKIP() << "a quarter of a minute of both cores: with MINIQAT_ALL_CASES";
  const Outcome outcome = started("bench --quick --loaded --threads 2 --out b.json", place_.path());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_text(outcome.out,
              {"\nlenet5         none ", "\nlenet5         same session ", "\nlenet5         own sessions "});
  EXPECT_EQ(processes_of(place_.path()), 0);
  const Json result = json();
  EXPECT_EQ(outcome.out.find(result["machine"]["cpu"].get<std::string>()), 0u) << outcome.out;
  for (const char* key : {"version", "date", "compiler", "thread_counts"}) EXPECT_TRUE(result.contains(key)) << key;
  ASSERT_EQ(result["loaded"].size(), 3u);
  ASSERT_EQ(result["disturbances"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result["disturbances"][i]["neighbours"], result["loaded"][i]["neighbours"]);
    EXPECT_EQ(result["disturbances"][i]["reasons"].empty(), result["loaded"][i]["quiet"].get<bool>());
  }
  for (const Json& row : result["loaded"]) {
    EXPECT_EQ(row["threads"], 2);
    EXPECT_EQ(row["images_per_second_rounds"].size(), 5u);
    EXPECT_EQ(row.contains("of_bar"), row["neighbours"] != "none") << row;
    expect_around(row, "images_per_second");
    expect_around(row, "one_thread");
  }
  expect_text(expect_success(program("bench --compare b.json b.json")).out, {"lenet5, W8A8, neighbours: "});
}

TEST_F(BenchTest, CtrlCEndsTheNeighbours) {
  Program program("bench --quick --loaded --threads 2", place_.path());
  // The program itself, and one neighbour or more.
  for (int looks = 0; looks < 3000 && processes_of(place_.path()) < 2; ++looks)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(processes_of(place_.path()), 2);
  program.send(SIGINT);
  EXPECT_EQ(program.wait().status, 130);
  EXPECT_EQ(processes_of(place_.path()), 0);
}

TEST_F(BenchTest, FilesThatCannotBeWrittenAreNamed) {
  expect_error(program("bench --plot none/p.svg"), 1, {"none/p.svg"});
  expect_error(program("bench --out none/b.json"), 1, {"none/b.json"});
}

}  // namespace
}  // namespace miniqat::testing::bench_test
