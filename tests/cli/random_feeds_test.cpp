// `miniqat run --random-feeds`, and the line that `run` ends with.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "core/files/safetensors.h"
#include "tests/cli/program.h"

namespace miniqat::testing::random_feeds_test {
namespace {

/// `labels` serve losses over five and over three classes, `five` only the former; nothing reads `unread`.
const std::string kGraph = R"({"format": "miniqat.graph", "version": 1, "nodes": [
  {"name": "x", "op": "Placeholder", "attrs": {"shape": [500, 5]}},
  {"name": "y", "op": "Placeholder", "attrs": {"shape": [500, 3]}},
  {"name": "z", "op": "Placeholder", "attrs": {"shape": [500, 5]}},
  {"name": "labels", "op": "Placeholder", "attrs": {"shape": [500], "dtype": "int32"}},
  {"name": "five", "op": "Placeholder", "attrs": {"shape": [500], "dtype": "int32"}},
  {"name": "unread", "op": "Placeholder", "attrs": {"shape": [500], "dtype": "int32"}},
  {"name": "loss", "op": "SoftmaxCrossEntropy", "inputs": ["x", "labels"]},
  {"name": "loss3", "op": "SoftmaxCrossEntropy", "inputs": ["y", "labels"]},
  {"name": "loss5", "op": "SoftmaxCrossEntropy", "inputs": ["x", "five"]}], "outputs": ["loss"]})";

class RandomFeedsTest : public ProgramTest {
 protected:
  static Arguments line(const Arguments& more) {
    return "run --graph graph.json --threads 1 --out out.safetensors" + more;
  }
  Outcome run(const Arguments& more) const {
    place_.write("graph.json", kGraph);
    return program(line(more));
  }
  NamedTensors compute(const Arguments& more) const {
    expect_success(run(more));
    return read_safetensors(path("out.safetensors")).tensors;
  }
};

std::vector<float> floats(const NamedTensors& tensors, const std::string& name) {
  const auto values = tensors.at(name).values<float>();
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> integers(const NamedTensors& tensors, const std::string& name) {
  const auto values = tensors.at(name).values<std::int32_t>();
  return {values.begin(), values.end()};
}

std::set<std::int32_t> distinct(const NamedTensors& tensors, const std::string& name) {
  const std::vector<std::int32_t> values = integers(tensors, name);
  return {values.begin(), values.end()};
}

TEST_F(RandomFeedsTest, PicturesAreNormalAndLabelsAreClasses) {
  const NamedTensors out = compute({"--random-feeds", "--fetch", "x,z,labels,five,unread,loss,loss3"});
  double sum = 0, squares = 0;
  const std::vector<float> x = floats(out, "x");
  for (const float value : x) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 2500, 0, 0.1) << "five standard deviations";
  EXPECT_NEAR(squares / 2500, 1, 0.15);
  EXPECT_NE(x, floats(out, "z"));
  EXPECT_EQ(distinct(out, "five"), (std::set<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(distinct(out, "labels"), (std::set<std::int32_t>{0, 1, 2})) << "the loss with fewer classes decides";
  EXPECT_EQ(distinct(out, "unread"), (std::set<std::int32_t>{0}));
  EXPECT_GT(*out.at("loss").data<float>(), 0);
}

TEST_F(RandomFeedsTest, TargetsAreWhatTheirLossTakes) {
  place_.write("losses.json", R"({"format": "miniqat.graph", "version": 2, "nodes": [
    {"name": "x", "op": "Placeholder", "attrs": {"shape": [40, 5]}},
    {"name": "numbers", "op": "Placeholder", "attrs": {"shape": [40, 5]}},
    {"name": "labels", "op": "Placeholder", "attrs": {"shape": [40, 5]}},
    {"name": "loss", "op": "SigmoidCrossEntropy", "inputs": ["x", "labels"]},
    {"name": "mse", "op": "MeanSquaredError", "inputs": ["x", "numbers"]}], "outputs": ["loss"]})");
  expect_success(
      program("run --graph losses.json --random-feeds --fetch x,numbers,labels,loss,mse --out out.safetensors"));
  const NamedTensors out = read_safetensors(path("out.safetensors")).tensors;
  const std::vector<float> labels = floats(out, "labels");
  EXPECT_EQ(std::set<float>(labels.begin(), labels.end()), (std::set<float>{0, 1}));
  for (const std::string name : {"x", "numbers"}) {
    const std::vector<float> values = floats(out, name);
    EXPECT_EQ(std::set<float>(values.begin(), values.end()).size(), 200u) << name;
  }
  EXPECT_GT(*out.at("loss").data<float>(), 0);
  EXPECT_GT(*out.at("mse").data<float>(), 0);
}

TEST_F(RandomFeedsTest, TheSeedDecides) {
  const Arguments asked = "--random-feeds --fetch x,five";
  const NamedTensors one = compute(asked), again = compute({"--random-feeds", "--fetch", "five,x", "--seed", "1"}),
                     two = compute({"--random-feeds", "--fetch", "x,five", "--seed", "2"});
  EXPECT_EQ(floats(one, "x"), floats(again, "x"));
  EXPECT_EQ(integers(one, "five"), integers(again, "five"));
  EXPECT_NE(floats(one, "x"), floats(two, "x"));
  EXPECT_NE(integers(one, "five"), integers(two, "five"));
}

TEST_F(RandomFeedsTest, WhatIsFedStaysAsItIs) {
  Tensor x(Shape{500, 5});
  std::ranges::fill(x.values<float>(), 0.5f);
  write_safetensors(path("feeds.safetensors"), {.tensors = {{"x", x}}, .metadata = {}});
  const NamedTensors out =
      compute({"--feeds", "feeds.safetensors", "--random-feeds", "--fetch", "x,five,loss5", "--gradients-of", "loss3"});
  EXPECT_EQ(floats(out, "x"), std::vector<float>(2500, 0.5f));
  EXPECT_EQ(distinct(out, "five").size(), 5u);
  EXPECT_NEAR(*out.at("loss5").data<float>(), std::log(5.0f), 1e-5f);
  ASSERT_TRUE(out.contains("grad/y")) << "gradients reach random feeds, too";
  EXPECT_TRUE(std::ranges::any_of(floats(out, "grad/y"), [](float value) { return value != 0; }));
}

TEST_F(RandomFeedsTest, WithoutTheFlagPlaceholdersMustBeFed) {
  expect_error(run("--fetch loss"), 1, {"must be fed", "[500"});
}

TEST_F(RandomFeedsTest, ARunEndsWithNodesArenaAndPeakMemory) {
  // More than the program needs: what the process that starts it holds is none of its memory.
  const std::vector<char> ballast(300'000'000, 1);
  place_.write("graph.json", R"({"format": "miniqat.graph", "version": 1,
    "nodes": [{"name": "x", "op": "Placeholder", "attrs": {"shape": [1000, 1000]}},
              {"name": "y", "op": "Placeholder", "attrs": {"shape": [2]}},
              {"name": "square", "op": "Square", "inputs": ["x"]}]})");
  const Outcome outcome = expect_success(started(line("--random-feeds --fetch square"), place_.path()));
  int peak = 0;
  const std::size_t end = outcome.out.find("\nran ");
  ASSERT_NE(end, std::string::npos) << outcome.out;
  ASSERT_EQ(
      std::sscanf(outcome.out.c_str() + end + 1,
                  "ran 2 nodes (1 dropped) in 2 steps, arena 4.0 MB for 4.0 MB of tensors; process peak so far %d MB",
                  &peak),
      1)
      << outcome.out;
  EXPECT_GT(peak, 12) << "input, arena and the copy that was fetched";
  EXPECT_LT(peak, static_cast<int>(ballast.size() / 1'000'000) - 50);
}

}  // namespace
}  // namespace miniqat::testing::random_feeds_test
