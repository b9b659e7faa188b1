// The profile: what its sums are over, the table, the trace, and that a profiled session computes the same.

#include "core/engine/profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/engine/session.h"
#include "core/text/json.h"
#include "layers/layers.h"
#include "optim/sgd.h"

namespace miniqat::profile_test {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

constexpr MachineRates kRates{.threads = 2, .operations_per_second = 1e12, .bytes_per_second = 1e11};

std::string table_of(const Profile& profile) { return profile_table(profile, kRates); }

/// A step at `start` that takes 100 us: 10 us of waiting before it, then 30 us forward and 20 us backward of "a".
void put_step(Profile& profile, std::int64_t number, Profile::Time start, int slower = 1) {
  const auto at = [&](int offset) { return start + microseconds(offset * slower); };
  profile.record(ProfilePhase::kLoaderWait, "batch", "(loader)", at(-10), at(0));
  profile.record(ProfilePhase::kForward, "a", "Relu", at(5), at(35));
  profile.record(ProfilePhase::kBackward, "a", "Relu", at(40), at(60));
  profile.end_step(number, start, at(100));
}

Profile::Duration phase(const Profile& profile, ProfilePhase phase) {
  return profile.phases()[static_cast<std::size_t>(phase)];
}

TEST(ProfileTest, SumsLeaveTheFirstStepsOut) {
  Profile profile;
  for (int step = 1; step <= 7; ++step)
    put_step(profile, step, Profile::Time(microseconds(100'000 * step)), step <= 2 ? 100 : 1);
  EXPECT_EQ(profile.steps(), 5);
  EXPECT_EQ(profile.total(), microseconds(5 * 110));
  EXPECT_EQ(phase(profile, ProfilePhase::kForward), microseconds(150));
  EXPECT_EQ(phase(profile, ProfilePhase::kBackward), microseconds(100));
  EXPECT_EQ(phase(profile, ProfilePhase::kLoaderWait), microseconds(50));
  EXPECT_EQ(phase(profile, ProfilePhase::kOptimizer), microseconds(0));
  EXPECT_EQ(phase(profile, ProfilePhase::kOther), microseconds(250)) << "what no part accounts for";
  ASSERT_EQ(profile.parts().size(), 2u);
  EXPECT_EQ(profile.parts()[1].name, "a");
  EXPECT_EQ(profile.parts()[1].calls, 10);
}

TEST(ProfileTest, WithNoOtherStepsTheFirstOnesCount) {
  Profile profile;
  EXPECT_NE(table_of(profile).find("no step"), std::string::npos);
  put_step(profile, 1, Profile::Time(microseconds(100)));
  EXPECT_EQ(profile.steps(), 1);
  EXPECT_EQ(profile.total(), microseconds(110));
  EXPECT_NE(table_of(profile).find("the first ones"), std::string::npos) << table_of(profile);
}

TEST(ProfileTest, OnlyTheLastStepsAreKept) {
  Profile profile;
  for (int step = 1; step <= 25; ++step) put_step(profile, step, Profile::Time(microseconds(1000 * step)));
  ASSERT_EQ(profile.kept().size(), Profile::kKeptSteps);
  EXPECT_EQ(profile.kept().front().number, 16);
  EXPECT_EQ(profile.kept().back().number, 25);
  for (const Profile::Step& step : profile.kept()) EXPECT_EQ(step.events.size(), 3u);
  EXPECT_EQ(Json::parse(profile_trace(profile, kRates))["traceEvents"].size(), 40u);
}

TEST(ProfileTest, TheTableIsSortedByTime) {
  Profile profile;
  for (int step = 1; step <= 4; ++step) put_step(profile, step, Profile::Time(microseconds(1000 * step)));
  const std::string table = table_of(profile);
  EXPECT_NE(table.find("0.110 ms a step, mean of 2 steps (all but the first 2)"), std::string::npos) << table;
  EXPECT_LT(table.find("a      Relu"), table.find("batch  (loader)")) << table;
  EXPECT_NE(table.find("0.030        0.020              45.5%\n"), std::string::npos) << table;
  EXPECT_NE(table.find("0.030        0.020              45.5%             2\n"), std::string::npos) << table;
  EXPECT_NE(table.find("All together at least 0.000 ms a step: 0.00\n"), std::string::npos) << table;
  EXPECT_NE(table.find("forward         0.030   27.3%"), std::string::npos) << table;
}

TEST(ProfileTest, TheTableSaysHowNearItIsToTheMachine) {
  Profile profile;
  const Profile::Time begin;
  const auto put = [&](ProfilePhase phase, const char* name, int from, int to, PartWork work) {
    profile.record(phase, name, "MatMul", begin + microseconds(from), begin + microseconds(to), work);
  };
  // Forward is bound by its 20 MFLOP (20 us at least), backward by its 3 MB (30 us).
  put(ProfilePhase::kForward, "dense", 0, 40, {.multiply_adds = 1e7, .bytes = 1e6});
  put(ProfilePhase::kBackward, "dense", 40, 100, {.multiply_adds = 1e7, .bytes = 3e6});
  put(ProfilePhase::kForward, "other", 100, 140, {.bytes = 1e6});
  put(ProfilePhase::kForward, "unknown", 140, 150, {});
  profile.end_step(1, begin, begin + microseconds(200));
  const std::string table = table_of(profile);
  EXPECT_NE(table.find("50.0%     0.040      4.00         0.50\n"), std::string::npos) << table;
  EXPECT_NE(table.find("20.0%                1.00         0.25\n"), std::string::npos) << table;
  EXPECT_NE(table.find("unknown  MatMul       0.010                            5.0%\n"), std::string::npos) << table;
  // By type the least times add up; what has no work does not count.
  EXPECT_NE(table.find("75.0%             4     0.040      5.00         0.43\n"), std::string::npos) << table;
  EXPECT_NE(table.find("1000 GFLOP/s"), std::string::npos) << table;
  EXPECT_NE(table.find("100.0 GB/s of a copy, on 2 threads"), std::string::npos) << table;
  EXPECT_NE(table.find("All together at least 0.060 ms a step: 0.30\n"), std::string::npos) << table;
  const Json parts = Json::parse(profile_trace(profile, kRates))["parts"];
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0]["node"], "dense");
  EXPECT_NEAR(parts[0]["phases"]["forward"]["gflop"], 0.02, 1e-9);
  EXPECT_NEAR(parts[0]["phases"]["backward"]["mb"], 3, 1e-9);
  EXPECT_NEAR(parts[0]["least_ms"], 0.05, 1e-9);
  EXPECT_NEAR(parts[0]["phases"]["backward"]["ms"], 0.06, 1e-9);
  EXPECT_FALSE(parts[0]["phases"].contains("optimizer"));
}

/// One step of `tiny` nodes that take 1 us and `count` that take 1 ms, 2 ms and so on.
std::string table_of_nodes(int tiny, int count) {
  Profile profile;
  Profile::Time now;
  for (int i = 1 - tiny; i <= count; ++i) {
    const Profile::Time begin = std::exchange(now, now + microseconds(i < 1 ? 1 : 1000 * i));
    profile.record(ProfilePhase::kForward, "node" + std::to_string(i), "Relu", begin, now);
  }
  profile.end_step(1, Profile::Time(), now);
  return table_of(profile);
}

TEST(ProfileTest, SmallRowsAreSummedUp) {
  EXPECT_EQ(table_of_nodes(1, 10).find(" more"), std::string::npos) << "a row in place of one row";
  std::string table = table_of_nodes(5, 10);
  EXPECT_NE(table.find("\nnode1 "), std::string::npos) << table;
  EXPECT_NE(table.find("\n... 5 more             0.005"), std::string::npos) << table;
  // However long the tail is, the table isn't.
  table = table_of_nodes(0, 40);
  EXPECT_NE(table.find("\nnode16 "), std::string::npos) << table;
  EXPECT_EQ(table.find("\nnode15 "), std::string::npos) << table;
  EXPECT_NE(table.find("\n... 15 more           120.000"), std::string::npos) << table;
}

/// A dense layer with a loss; x feeds two consumers, so that gradients are summed.
struct Net {
  Net() {
    layers::register_ops();
    images = layers::placeholder(graph, "images", {32, 16});
    labels = layers::placeholder(graph, "labels", {32}, DType::kInt32);
    const Output weights = variable(graph, "fc/weights", {16, 10}, Initializer::glorot_uniform());
    const Output product = layers::matmul(graph, "fc/MatMul", images, weights);
    const Output sum = layers::add(graph, "twice", layers::relu(graph, "relu", product), product);
    loss = layers::softmax_cross_entropy(graph, sum, labels);
    Tensor pixels(images.shape()), classes(labels.shape(), DType::kInt32);
    for (int i = 0; i < 32 * 16; ++i) pixels.data<float>()[i] = static_cast<float>(i % 7) - 3;
    for (int i = 0; i < 32; ++i) classes.data<std::int32_t>()[i] = i % 10;
    feeds = {{images, pixels}, {labels, classes}};
  }

  std::vector<float> losses(Profile* profile) {
    Session session(graph);
    session.set_profile(profile);
    std::vector<float> result;
    for (int step = 0; step < 6; ++step) result.push_back(session.train_step(loss, optimizer, feeds));
    return result;
  }

  Graph graph;
  Output images, labels, loss;
  optim::Sgd optimizer{{.learning_rate = 0.1, .momentum = 0.9}};
  Feeds feeds;
};

TEST(ProfileTest, AProfiledSessionComputesTheSame) {
  Net net;
  Profile profile;
  EXPECT_EQ(net.losses(nullptr), net.losses(&profile));
  EXPECT_EQ(profile.steps(), 4);
}

TEST(ProfileTest, AllNodesAndPhasesOfAStepAreThere) {
  Net net;
  Profile profile;
  net.losses(&profile);
  std::map<std::string, std::int64_t> calls;
  for (const Profile::Part& part : profile.parts()) calls[part.name + " " + part.type] += part.calls;
  EXPECT_EQ(calls["fc/MatMul MatMul"], 8) << "forward and backward of 4 steps";
  EXPECT_EQ(calls["loss SoftmaxCrossEntropy"], 8);
  EXPECT_EQ(calls["fc/weights (update)"], 4);
  std::map<std::string, PartWork> forward, backward, update;
  for (const Profile::Part& part : profile.parts()) {
    forward[part.name] += part.work[static_cast<std::size_t>(ProfilePhase::kForward)];
    backward[part.name] += part.work[static_cast<std::size_t>(ProfilePhase::kBackward)];
    update[part.name] += part.work[static_cast<std::size_t>(ProfilePhase::kOptimizer)];
  }
  // [32, 16] by [16, 10]; nobody asks for the gradient of the images.
  constexpr double kSteps = 4, kX = 4 * 32 * 16, kW = 4 * 16 * 10, kY = 4 * 32 * 10;
  EXPECT_EQ(forward["fc/MatMul"].multiply_adds, kSteps * 32 * 16 * 10);
  EXPECT_EQ(forward["fc/MatMul"].bytes, kSteps * (kX + kW + kY));
  EXPECT_EQ(backward["fc/MatMul"].multiply_adds, kSteps * 32 * 16 * 10);
  EXPECT_EQ(backward["fc/MatMul"].bytes, kSteps * (kX + 2 * kW + kY)) << "the weights count as read, for a d_x";
  EXPECT_EQ(update["fc/weights"].bytes, kSteps * 5 * kW) << "gradient, and value and momentum twice";
  for (const ProfilePhase each : {ProfilePhase::kForward, ProfilePhase::kBackward, ProfilePhase::kOptimizer})
    EXPECT_GT(phase(profile, each).count(), 0) << name_of(each);
  Profile::Duration sum{};
  for (const Profile::Duration part : profile.phases()) sum += part;
  EXPECT_EQ(sum, profile.total());
}

TEST(ProfileTest, TraceEventsNest) {
  Net net;
  Profile profile;
  net.losses(&profile);
  const Json trace = Json::parse(profile_trace(profile, kRates));
  // Numbers of nanoseconds, which add up exactly.
  const auto nanoseconds = [](const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); };
  long long step_end = -1, last_end = -1;
  int steps = 0, parts = 0;
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["ph"], "X");
    const long long begin = nanoseconds(event["ts"]), end = begin + nanoseconds(event["dur"]);
    EXPECT_GE(begin, last_end) << event;
    if (event["cat"] == "step") {
      ++steps;
      step_end = end;
      last_end = begin;
    } else {
      ++parts;
      EXPECT_LE(end, step_end) << event;
      last_end = end;
    }
  }
  EXPECT_EQ(steps, 6);
  EXPECT_GE(parts, 6 * 8);
}

}  // namespace
}  // namespace miniqat::profile_test
