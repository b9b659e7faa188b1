// Variables with "update": "multiplicative".

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "layers/layers.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::multiplicative_variable_test {
namespace {

using testing::error_of;
using testing::mentions;
using Bytes = std::map<std::string, std::string>;

Bytes bytes_of(const Safetensors& content) {
  Bytes result;
  for (const auto& [name, tensor] : content.tensors)
    result[name] = tensor.shape().str() + std::string(static_cast<const char*>(tensor.raw()), tensor.bytes());
  return result;
}

/// The mean of (x * w * scales - 1)^2, w with additive updates, scales with multiplicative ones. Both are matrices:
/// what decays by default.
struct Model {
  explicit Model(VariableUpdateKind update = VariableUpdateKind::kMultiplicative) {
    const Node& node = graph.add(
        "scales", Variable::make({.shape = {1, 2}, .initializer = Initializer::constant(0.5), .update = update}), {});
    const Output scaled = layers::mul(graph, "scaled", layers::mul(graph, "xw", x, w), node.output());
    const Output off = layers::add(graph, "off", scaled, constant(graph, "minus_one", {1, 2}, {-1}));
    loss = layers::mean(graph, "loss", layers::square(graph, "square", off), {.axes = {0, 1}});
  }

  void train(Session& session, const Optimizer& optimizer, int steps) const {
    for (int i = 0; i < steps; ++i) {
      const auto t = static_cast<float>(session.step());
      session.train_step(loss, optimizer, {{x, Tensor::from<float>({1, 2}, {1 + std::sin(t), std::cos(t)})}});
    }
  }

  Graph graph;
  Output x = placeholder(graph, "x", {1, 2});
  Output w = variable(graph, "w", {1, 2}, Initializer::constant(0.25));
  Output loss;
};

std::vector<float> scales_of(Session& session) {
  const Tensor tensor = session.variable("scales");
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

TEST(MultiplicativeVariable, GraphJsonSaysSoWhereItIsSo) {
  layers::register_ops();
  const std::string text = graph_to_json(Model().graph);
  EXPECT_NE(text.find(R"("shape": [1, 2], "update": "multiplicative", "initializer")"), std::string::npos) << text;
  EXPECT_EQ(graph_to_json(graph_from_json(text)), text);
  EXPECT_EQ(graph_from_json(text).at("scales").as<Variable>()->update, VariableUpdateKind::kMultiplicative);
  const std::string additive = graph_to_json(Model(VariableUpdateKind::kAdditive).graph);
  EXPECT_EQ(additive.find("update"), std::string::npos) << "files without such variables are as they were";
  EXPECT_EQ(graph_from_json(additive).at("scales").as<Variable>()->update, VariableUpdateKind::kAdditive);
  std::string unknown = text;
  unknown.replace(unknown.find("multiplicative"), std::string("multiplicative").size(), "divisive");
  EXPECT_TRUE(mentions(error_of([&] { graph_from_json(unknown); }),
                       {"\"scales\"", "update", "divisive", "additive", "multiplicative"}));
}

/// Adds, and knows nothing else.
class OnlyAdds final : public Optimizer {
 public:
  std::span<const std::string_view> slot_names() const override { return {}; }
  void apply(const VariableUpdate&) const override {}
  double learning_rate(std::int64_t) const override { return 1; }
};

TEST(MultiplicativeVariable, AnOptimizerWithoutSuchUpdatesIsRefused) {
  Model model;
  Session session(model.graph);
  EXPECT_TRUE(mentions(error_of([&] { model.train(session, OnlyAdds(), 1); }),
                       {"[Variable \"scales\"] needs multiplicative updates, which this optimizer does not support"}));
  EXPECT_EQ(session.step(), 0);
  Model additive(VariableUpdateKind::kAdditive);
  Session other(additive.graph);
  additive.train(other, OnlyAdds(), 1);
  EXPECT_EQ(other.step(), 1);
}

TEST(MultiplicativeVariable, TheFirstStepMultipliesByTheRateOfRanges) {
  Model model;
  Session session(model.graph);
  model.train(session, optim::Sgd({.learning_rate = 100, .ranges = {.learning_rate = 0.125}}), 1);
  // The gradient of both is negative: x * w * scale is less than 1.
  for (const float scale : scales_of(session)) EXPECT_NEAR(scale, 0.5 * std::exp(0.125), 1e-6);
  EXPECT_GT(std::abs(session.variable("w").values<float>()[0] - 0.25f), 1) << "the other rate";
}

TEST(MultiplicativeVariable, WeightDecayDoesNotTouchThem) {
  Model model;
  const auto trained = [&](const Optimizer& optimizer) {
    Session session(model.graph);
    model.train(session, optimizer, 1);
    return std::pair(scales_of(session), session.variable("w").values<float>()[0]);
  };
  const optim::Sgd sgd({}), decaying_sgd({.weight_decay = 0.5, .decay_all = true});
  EXPECT_EQ(trained(sgd).first, trained(decaying_sgd).first);
  EXPECT_NE(trained(sgd).second, trained(decaying_sgd).second);
  // Adam's first step has one length whatever the decay, unless that turns its sign.
  const optim::Adam adam({}), decaying_adam({.weight_decay = 1e6, .decay_all = true});
  EXPECT_EQ(trained(adam).first, trained(decaying_adam).first);
  EXPECT_NE(trained(adam).second, trained(decaying_adam).second);
}

TEST(MultiplicativeVariable, CheckpointsHaveTheirSlotsAndGoOnToTheSameBits) {
  const testing::TempDir dir;
  const optim::Sgd sgd({.learning_rate = 0.1, .momentum = 0.9, .ranges = {.learning_rate = 0.05}});
  const optim::Adam adam({.learning_rate = 0.1, .ranges = {.learning_rate = 0.05}});
  for (const Optimizer* optimizer : {static_cast<const Optimizer*>(&sgd), static_cast<const Optimizer*>(&adam)}) {
    Model model;
    Session whole(model.graph);
    model.train(whole, *optimizer, 9);
    for (const int stop : {1, 4}) {
      Session first(model.graph), second(model.graph);
      model.train(first, *optimizer, stop);
      const Safetensors content = first.checkpoint();
      EXPECT_TRUE(content.tensors.contains("optimizer:log_m/scales"));
      EXPECT_TRUE(content.tensors.contains("optimizer:log_v/scales"));
      EXPECT_FALSE(content.tensors.contains("optimizer:log_m/w"));
      EXPECT_EQ(content.tensors.contains("optimizer:momentum/w"), optimizer == &sgd);
      EXPECT_FALSE(content.tensors.contains("optimizer:momentum/scales"));
      EXPECT_FALSE(content.tensors.contains("optimizer:m/scales"));
      write_safetensors(dir.path() / "checkpoint", content);
      second.restore(read_safetensors(dir.path() / "checkpoint"), Session::Restore::kExact, "checkpoint");
      EXPECT_EQ(bytes_of(second.checkpoint()), bytes_of(content));
      model.train(second, *optimizer, 9 - stop);
      EXPECT_EQ(bytes_of(second.checkpoint()), bytes_of(whole.checkpoint())) << "stopped after " << stop;
    }
  }
}

// An optimizer with the same slots for additive variables, and others for these, is not taken for the first.
TEST(MultiplicativeVariable, ASessionChangesFromOneOptimizerToAnother) {
  Model model;
  Session session(model.graph);
  model.train(session, optim::Sgd({.ranges = {.learning_rate = 0.125}}), 1);
  EXPECT_TRUE(mentions(error_of([&] { model.train(session, OnlyAdds(), 1); }), {"multiplicative updates"}));
  const std::vector<float> before = scales_of(session);
  model.train(session, optim::Sgd({.ranges = {.learning_rate = 0}}), 1);
  EXPECT_EQ(scales_of(session), before) << "its own rate, with the plan of the first";
}

}  // namespace
}  // namespace miniqat::multiplicative_variable_test
