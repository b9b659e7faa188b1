// `miniqat train --profile`: the table on stdout and the trace on disk; `miniqat eval --profile`.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::profile_test {
namespace {

using Json = nlohmann::json;

using ProfileTest = TinyTaskTest;

TEST_F(ProfileTest, TheTableNamesTheNodesAndTheTraceTheLastSteps) {
  const Outcome outcome = expect_success(train("run", "--profile --steps 16"));
  expect_text(outcome.out, {"mean of 14 steps"});
  const Json events = Json::parse(bytes_of(path("run/trace.json")))["traceEvents"];
  // The table sums up what comes behind 99.5% of the time: all nodes, if the loader had no core.
  std::smatch waited;
  ASSERT_TRUE(std::regex_search(outcome.out, waited, std::regex("\nloader wait .* ([0-9.]+)%"))) << outcome.out;
  if (std::stod(waited[1]) < 80) {
    for (const char* name : {"conv1/Conv2D", "conv1", "fc/MatMul"})
      expect_text(outcome.out, {std::string("\n") + name + " "});
  }
  for (const char* name : {"conv1/Conv2D", "conv1", "fc/MatMul", "loss", "conv1/weights", "next batch"})
    EXPECT_TRUE(std::ranges::any_of(events, [&](const Json& event) { return event["name"] == name; })) << name;
  for (const char* phase : {"forward ", "backward ", "optimizer ", "loader wait ", "other "})
    expect_text(outcome.out, {std::string("\n") + phase});
  EXPECT_EQ(std::ranges::count_if(events, [](const Json& event) { return event["cat"] == "step"; }), 10);
  EXPECT_TRUE(std::ranges::any_of(events, [](const Json& event) { return event["name"] == "step 16"; }));
}

TEST_F(ProfileTest, ItChangesNoResultAndIsOffByDefault) {
  const Outcome plain = expect_success(train("plain"));
  EXPECT_EQ(plain.out.find("profile"), std::string::npos) << plain.out;
  EXPECT_FALSE(std::filesystem::exists(path("plain/trace.json")));
  expect_success(train("profiled", "--profile elsewhere.json"));
  EXPECT_TRUE(std::filesystem::exists(path("elsewhere.json")));
  EXPECT_FALSE(std::filesystem::exists(path("profiled/trace.json")));
  EXPECT_EQ(bytes_of(path("plain/checkpoint.safetensors")), bytes_of(path("profiled/checkpoint.safetensors")));
}

TEST_F(ProfileTest, AnEvaluationHasOneToo) {
  expect_success(train("run"));
  const auto eval = [&](Arguments words) {
    words.insert(words.begin(), {"eval", "run", "--threads", "1"});
    return program(words);
  };
  const Outcome plain = eval({}), profiled = eval({"--profile"});
  expect_success(profiled);
  EXPECT_EQ(profiled.out.substr(0, plain.out.size()), plain.out);
  expect_text(profiled.out,
              {"\nconv1/Conv2D ", "\nnext batch ", "All together at least", "steps (all but the first 2)"});
}

}  // namespace
}  // namespace miniqat::testing::profile_test
