#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/engine/session.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "tests/core/observer_op.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::session_checkpoint_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::observer;
using Restore = Session::Restore;

/// Every bit of a checkpoint.
std::map<std::string, std::string> bits(const Safetensors& content) {
  std::map<std::string, std::string> result;
  for (const auto& [name, tensor] : content.tensors)
    result[name] = tensor.shape().str() + std::string(static_cast<const char*>(tensor.raw()), tensor.bytes());
  return result;
}

/// A model with everything that a session keeps: momentum, dropout, an observer with state, two counters.
struct Model {
  Graph graph;
  Output x = placeholder(graph, "x", {4, 3});
  Output hidden = layers::matmul(graph, "hidden", x, variable(graph, "hidden/weights", {3, 5}));
  Output seen = observer(graph, "hidden/observer", hidden, {.delay = 3});
  Output dropped = layers::dropout(graph, "drop", seen, {.rate = 0.25});
  Output biased = layers::bias_add(graph, "biased", dropped, variable(graph, "bias", {5}, Initializer::constant(0.5)));
  Output loss = layers::mean(graph, "loss", layers::square(graph, "square", biased), {.axes = {0, 1}});

  /// The batch of a step depends on the step only.
  void train(Session& session, int steps) {
    const optim::Sgd sgd({.learning_rate = 0.1, .momentum = 0.9});
    for (int i = 0; i < steps; ++i) {
      Tensor batch(Shape{4, 3});
      Initializer::truncated_normal(1).fill(batch, static_cast<std::uint64_t>(session.step()));
      session.train_step(loss, sgd, {{x, batch}});
    }
  }
};

class CheckpointTest : public ::testing::Test {
 protected:
  Model model_;
  Session session_{model_.graph, {.seed = 7}};

  void SetUp() override { model_.train(session_, 2); }

  /// Restoring `content` throws an Error that names the source and `parts`, and changes nothing.
  void expect_refused(const Safetensors& content, Restore mode, std::vector<std::string> parts) {
    const auto before = bits(session_.checkpoint());
    parts.push_back("run/checkpoint: ");
    EXPECT_TRUE(mentions(error_of([&] { session_.restore(content, mode, "run/checkpoint"); }), parts));
    EXPECT_EQ(bits(session_.checkpoint()), before);
  }

  /// A checkpoint of another run, edited.
  Safetensors edited(const std::function<void(NamedTensors&)>& edit) {
    Model other;
    Session session(other.graph, {.seed = 8});
    other.train(session, 5);
    Safetensors content = session.checkpoint();
    edit(content.tensors);
    return content;
  }
};

TEST_F(CheckpointTest, HoldsVariablesStatesSlotsAndCounters) {
  std::vector<std::string> names;
  const Safetensors content = session_.checkpoint();
  for (const auto& [name, tensor] : content.tensors) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"bias", "hidden/observer/calls", "hidden/observer/total", "hidden/weights",
                                             "optimizer:momentum/bias", "optimizer:momentum/hidden/weights",
                                             "session:quantization_step", "session:step"}));
  EXPECT_EQ(*content.tensors.at("session:step").data<std::int64_t>(), 2);
}

TEST_F(CheckpointTest, IsNotChangedByTrainingOn) {
  const Safetensors content = session_.checkpoint();
  const auto before = bits(content);
  model_.train(session_, 1);
  EXPECT_EQ(bits(content), before);
  EXPECT_NE(bits(session_.checkpoint()), before);
}

// Stopped before, at and after the observer's delay, through a file, into a session whose variables are others.
TEST_F(CheckpointTest, ARestoredRunGoesOnToTheSameBits) {
  const testing::TempDir dir;
  Model whole;
  Session uninterrupted(whole.graph, {.seed = 7});
  whole.train(uninterrupted, 6);
  for (const int stop : {1, 2, 3, 4}) {
    Model first;
    Session stopped(first.graph, {.seed = 7});
    first.train(stopped, stop);
    write_safetensors(dir.path() / "checkpoint", stopped.checkpoint());

    Model second;
    Session resumed(second.graph, {.seed = 7});
    for (auto& [name, value] : resumed.variables()) std::ranges::fill(value.values<float>(), 9.0f);
    const auto report = resumed.restore(read_safetensors(dir.path() / "checkpoint"), Restore::kExact, "checkpoint");
    EXPECT_EQ(report.restored.size(), 4u);
    EXPECT_TRUE(report.fresh.empty());
    EXPECT_TRUE(report.unused.empty());
    EXPECT_EQ(resumed.step(), stop);
    EXPECT_EQ(bits(resumed.checkpoint()), bits(stopped.checkpoint()));
    second.train(resumed, 6 - stop);
    EXPECT_EQ(bits(resumed.checkpoint()), bits(uninterrupted.checkpoint())) << "stopped after " << stop;
  }
}

TEST_F(CheckpointTest, RestoringTakesBackWhatWasTrainedSince) {
  const Safetensors content = session_.checkpoint();
  model_.train(session_, 2);
  const auto wanted = bits(session_.checkpoint());
  session_.restore(content, Restore::kExact, "checkpoint");
  EXPECT_EQ(bits(session_.checkpoint()), bits(content));
  model_.train(session_, 2);
  EXPECT_EQ(bits(session_.checkpoint()), wanted);
}

TEST_F(CheckpointTest, SlotsOfVariablesThatAreGoneAreLeftOut) {
  const Output biased = model_.biased;
  model_.graph.reroute(biased, model_.dropped);
  const Output bias = biased.node->input(1);
  model_.graph.erase(*biased.node);
  model_.graph.erase(*bias.node);
  const Safetensors content = session_.checkpoint();
  EXPECT_FALSE(content.tensors.contains("bias"));
  EXPECT_FALSE(content.tensors.contains("optimizer:momentum/bias"));
  session_.restore(content, Restore::kExact, "checkpoint");
}

TEST_F(CheckpointTest, ExactRefusesWhatDoesNotFit) {
  const auto refuse = [this](const std::function<void(NamedTensors&)>& edit, const std::vector<std::string>& parts) {
    expect_refused(edited(edit), Restore::kExact, parts);
  };
  refuse([](NamedTensors& t) { t.erase("hidden/weights"); }, {"\"hidden/weights\" is missing"});
  refuse([](NamedTensors& t) { t.erase("hidden/observer/calls"); }, {"\"hidden/observer/calls\" is missing"});
  refuse([](NamedTensors& t) { t.emplace("other", Tensor(Shape{1})); }, {"\"other\"", "not a variable"});
  refuse([](NamedTensors& t) { t.emplace("session:mood", Tensor(Shape{1})); }, {"\"session:mood\""});
  refuse(
      [](NamedTensors& t) {
        const auto weights = t.extract("hidden/weights");
        t.emplace("hidden/weighs", weights.mapped());
      },
      {"\"hidden/weights\" is missing", "did you mean \"hidden/weighs\"?"});
  refuse([](NamedTensors& t) { t["bias"] = Tensor(Shape{6}); }, {"\"bias\"", "[6]", "[5]"});
  refuse([](NamedTensors& t) { t["bias"] = Tensor(Shape{5}, DType::kFloat64); }, {"\"bias\"", "float64", "float32"});
  refuse([](NamedTensors& t) { t["optimizer:momentum/bias"] = Tensor(Shape{6}); }, {"momentum/bias", "[6]", "[5]"});
  refuse([](NamedTensors& t) { t.emplace("optimizer:momentum/no", Tensor(Shape{1})); }, {"momentum/no"});
  refuse([](NamedTensors& t) { t.emplace("optimizer:", Tensor(Shape{1})); }, {"\"optimizer:\""});
  refuse([](NamedTensors& t) { t.erase("session:step"); }, {"\"session:step\" is missing"});
  refuse([](NamedTensors& t) { t.erase("session:quantization_step"); }, {"\"session:quantization_step\" is missing"});
  refuse([](NamedTensors& t) { t["session:step"] = Tensor::scalar<std::int64_t>(-1); }, {"session:step", "negative"});
  refuse([](NamedTensors& t) { t["session:step"] = Tensor::scalar(1.0f); }, {"session:step", "int64"});
  refuse([](NamedTensors& t) { t["session:step"] = Tensor(Shape{2}, DType::kInt64); }, {"session:step", "one int64"});
  expect_refused({}, Restore::kExact, {"is missing"});
}

TEST_F(CheckpointTest, NoModeTakesATensorThatHoldsNothing) {
  for (const Restore mode : {Restore::kExact, Restore::kVariables, Restore::kByName})
    for (const std::string name : {"bias", "optimizer:momentum/bias", "other"})
      expect_refused(edited([&](NamedTensors& t) { t[name] = Tensor(); }), mode, {"\"" + name + "\"", "holds nothing"});
}

TEST_F(CheckpointTest, NoModeTakesValuesThatAreNotFinite) {
  for (const Restore mode : {Restore::kExact, Restore::kVariables, Restore::kByName})
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const std::string name : {"bias", "optimizer:momentum/bias"})
        expect_refused(edited([&](NamedTensors& t) { t.at(name).data<float>()[3] = value; }), mode,
                       {"\"" + name + "\"", "element 3"});
}

TEST_F(CheckpointTest, VariablesModePassesOverOptimizerAndCounters) {
  const Safetensors content = edited([](NamedTensors& t) { t.erase("hidden/observer/calls"); });
  const auto before = bits(session_.checkpoint());
  const auto report = session_.restore(content, Restore::kVariables, "checkpoint");
  EXPECT_EQ(report.restored, (std::vector<std::string>{"bias", "hidden/observer/total", "hidden/weights"}));
  EXPECT_EQ(report.fresh, (std::vector<std::string>{"hidden/observer/calls"}));
  const auto after = bits(session_.checkpoint());
  const auto given = bits(content);
  EXPECT_EQ(after.at("hidden/weights"), given.at("hidden/weights"));
  EXPECT_NE(after.at("hidden/weights"), before.at("hidden/weights"));
  for (const std::string name : {"hidden/observer/calls", "optimizer:momentum/bias", "session:step"})
    EXPECT_EQ(after.at(name), before.at(name)) << name;

  expect_refused(edited([](NamedTensors& t) { t.erase("bias"); }), Restore::kVariables, {"\"bias\" is missing"});
  expect_refused(edited([](NamedTensors& t) { t.emplace("other", Tensor(Shape{1})); }), Restore::kVariables,
                 {"\"other\"", "not a variable"});
}

// A quantizer that only counts while it trains has no state in the evaluation graph.
TEST_F(CheckpointTest, VariablesModePassesOverStateOfOpsThatKeepNone) {
  Graph& graph = model_.graph;
  const Safetensors content = session_.checkpoint();
  const Output total = graph.at("hidden/observer/total").output();
  graph.reroute(model_.seen, model_.hidden);
  graph.erase(*model_.seen.node);
  layers::add(graph, "hidden/observer", model_.hidden, total);
  const auto report = session_.restore(content, Restore::kVariables, "checkpoint");
  EXPECT_EQ(report.unused, (std::vector<std::string>{"hidden/observer/calls"}));
  expect_refused(content, Restore::kExact, {"\"hidden/observer/calls\"", "not a variable"});
}

TEST_F(CheckpointTest, ByNameTakesWhatFitsAndStartsAnew) {
  const Safetensors content = edited([](NamedTensors& t) {
    t.erase("bias");
    t.emplace("other", Tensor(Shape{1}));
  });
  const auto before = bits(session_.checkpoint());
  const auto report = session_.restore(content, Restore::kByName, "checkpoint");
  EXPECT_EQ(report.restored,
            (std::vector<std::string>{"hidden/observer/calls", "hidden/observer/total", "hidden/weights"}));
  EXPECT_EQ(report.fresh, (std::vector<std::string>{"bias"}));
  EXPECT_EQ(report.unused, (std::vector<std::string>{"other"}));
  const auto after = bits(session_.checkpoint());
  EXPECT_EQ(after.at("hidden/weights"), bits(content).at("hidden/weights"));
  EXPECT_EQ(after.at("bias"), before.at("bias"));
  EXPECT_EQ(session_.step(), 0);
  EXPECT_EQ(session_.quantization_step(), 0);
  EXPECT_FALSE(after.contains("optimizer:momentum/bias"));
  expect_refused(edited([](NamedTensors& t) { t["bias"] = Tensor(Shape{6}); }), Restore::kByName,
                 {"\"bias\"", "[6]", "[5]"});
}

}  // namespace
}  // namespace miniqat::session_checkpoint_test
