// Chains with numbers that are none, and with factors and variances of 0.
#include <array>
#include <cmath>
#include <limits>

#include "core/threads/parallel.h"
#include "layers/chain/chain.h"
#include "optim/sgd.h"
#include "tests/errors.h"
#include "tests/fewer_cases.h"
#include "tests/layers/chain/chain_case.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::chain_special_values_test {
namespace {

using namespace testing;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<float, 3> kSpecial = {NAN, kInfinity, -kInfinity};

/// The recipe with some quantizers and pools in all places: enough to come through every path once.
std::vector<ChainRecipe> recipes() {
  std::vector<ChainRecipe> all;
  for (const bool pools : {false, true})
    for (ChainRecipe recipe : all_chains(pools)) {
      recipe.shape = {2, 4, 6, 5};
      if (pools) recipe.pool = PoolAttributes{.window = {2, 2}};
      for (const std::size_t quantizer : {0, 3, 5, 6, 100}) {
        recipe.quantizer.reset();
        if (quantizer < chain_quantizers().size()) recipe.quantizer = chain_quantizers()[quantizer];
        const int nodes =
            (recipe.addend != Addend::kNone) + (recipe.clamp != Clamp::kNone) + recipe.quantizer.has_value() + pools;
        if (recipe.scale || recipe.shift != Shift::kNone || nodes > 1) all.push_back(recipe);
      }
    }
  return all;
}

/// Same finite numbers, same infinities; NaN where the other has one.
void expect_alike(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.spec(), expected.spec()) << what;
  for (std::int64_t i = 0; i < actual.elements(); ++i) {
    const float a = actual.data<float>()[i], e = expected.data<float>()[i];
    ASSERT_TRUE((std::isnan(a) && std::isnan(e)) || a == e || std::abs(a - e) <= 1e-5f * (1 + std::abs(e)))
        << what << ", element " << i << " of " << actual.shape() << ": " << a << " instead of " << e;
  }
}

void forget_nan(Tensor& tensor, const Tensor& instead) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    if (std::isnan(tensor.data<float>()[i])) tensor.data<float>()[i] = instead.data<float>()[i];
}

bool is_finite(const Tensor& tensor) {
  return std::ranges::all_of(tensor.values<float>(), [](float value) { return std::isfinite(value); });
}

/// Whether a run in training mode would give a variable a NaN or infinity.
template <class Run>
bool is_refused(const Run& run) {
  try {
    run();
    return false;
  } catch (const NonFiniteUpdate&) {
    return true;
  }
}

class ChainSpecialValues : public ::testing::Test {
 protected:
  void SetUp() override { set_thread_count(2); }

  /// One run with `value` in the middle of the placeholder `name`. With `empty_range` what the quantizer has learned
  /// is that all numbers are 0.
  void compare(const ChainRecipe& recipe, const std::string& name, float value, bool training,
               bool empty_range = false) {
    ChainCase chain = chain_case(recipe);
    RunRequest request = chain.request;
    request.training = training;
    Feeds feeds = chain_feeds(chain, recipe, 1);
    for (auto& [output, tensor] : feeds)
      if (output.node->name() == name) tensor.data<float>()[tensor.elements() / 2 + 1] = value;
    Session fast(chain.graph), reference(chain.graph, {.backend = Backend::kReference});
    for (Session* session : {&fast, &reference}) {
      fill_chain_variables(chain.graph, *session);
      for (const char* end : {"quant/min", "quant/max"})
        if (empty_range) session->set_variable(end, Tensor::scalar(0.0f));
    }
    const std::string what = recipe.text() + " with " + std::to_string(value) + " in " + name + ": ";
    RunResult got, wanted;
    const bool refused = is_refused([&] { got = fast.run(request, feeds); });
    EXPECT_EQ(is_refused([&] { wanted = reference.run(request, feeds); }), refused) << what;
    if (refused) {
      EXPECT_TRUE(training && recipe.normalises()) << what << "only statistics of a batch take on what is in it";
      return;
    }
    expect_alike(got.fetched[0], wanted.fetched[0], what + "y");
    for (std::size_t k = 0; k < got.gradients.size(); ++k) {
      // Where no gradient passes, the reference may add 0 times NaN.
      forget_nan(wanted.gradients[k], got.gradients[k]);
      expect_alike(got.gradients[k], wanted.gradients[k],
                   what + "gradient of " + request.gradient_targets[k].node->name());
    }
    NamedTensors variables = fast.variables();
    for (const auto& [variable, tensor] : reference.variables())
      if (is_finite(tensor))
        expect_alike(variables.at(variable), tensor, what + variable);
      else
        EXPECT_FALSE(is_finite(variables.at(variable))) << what << variable;
  }
};

TEST_F(ChainSpecialValues, AreWhatTheReferenceMakesOfThem) {
  OneIn chosen(4);
  for (const ChainRecipe& recipe : recipes())
    for (const float value : kSpecial)
      for (const bool training : {true, false}) {
        if (!chosen()) continue;
        compare(recipe, "left", value, training);
        if (recipe.addend != Addend::kNone) compare(recipe, "addend", value, training);
        if (HasFailure()) return;
      }
}

/// An empty grid makes 0 of every number and lets every gradient pass.
TEST_F(ChainSpecialValues, MeetAnEmptyGrid) {
  OneIn chosen(4);
  for (const ChainRecipe& recipe : recipes())
    for (const float value : kSpecial) {
      if (recipe.quantizer && chosen()) compare(recipe, "left", value, false, true);
      if (HasFailure()) return;
    }
}

TEST_F(ChainSpecialValues, OfThemAQuantizerLearnsNothing) {
  for (const ChainRecipe& recipe : recipes()) {
    if (!recipe.quantizer || recipe.quantizer->delay > 0) continue;
    for (const float value : kSpecial) {
      // What a clamp makes finite again is worth learning from.
      if (!std::isnan(value) && (recipe.clamp != Clamp::kNone || recipe.normalises() || recipe.scale)) continue;
      ChainCase chain = chain_case(recipe);
      Session session(chain.graph);
      fill_chain_variables(chain.graph, session);
      Feeds feeds = chain_feeds(chain, recipe, 1);
      Tensor& left = std::ranges::find(feeds, "left", [](const auto& feed) { return feed.first.name(); })->second;
      left.data<float>()[3] = value;
      RunResult result;
      const bool refused = is_refused([&] { result = session.run(chain.request, feeds); });
      EXPECT_TRUE(!refused || recipe.normalises()) << recipe.text();
      if (!refused) {
        for (const float y : result.fetched[0].values<float>()) ASSERT_TRUE(std::isnan(y)) << recipe.text();
      }
      expect_values(session.variable("quant/min"), {-0.75f}, recipe.text());
      expect_values(session.variable("quant/max"), {2.5f}, recipe.text());
      if (traits_of(recipe.quantizer->range).counts_steps)
        expect_values(session.variable("quant/num_updates"), {0}, recipe.text());
    }
  }
}

TEST_F(ChainSpecialValues, ANodeOfTheChainIsNamed) {
  Graph graph;
  const Output x = placeholder(graph, "x", {4, 8});
  const Output bias = variable(graph, "bias", {8});
  const Output biased = bias_add(graph, "biased", x, bias);
  const Output clamped = relu(graph, "clamped", biased);
  const Output rounded = quantize::fake_quant(graph, "quant", clamped, {});
  const Output loss = mean(graph, "loss", rounded, {.axes = {0, 1}});
  Session session(graph);
  const optim::Sgd sgd({.learning_rate = 0.1});
  Tensor bad = random_tensor({4, 8}, 1);
  // Fed NaNs are found at the placeholder itself; here one is the sum of two infinities.
  bad.data<float>()[3] = 3e38f;
  const auto expect_named = [&](const char* name) {
    try {
      session.train_step(loss, sgd, {{x, bad}});
      ADD_FAILURE() << "no error";
    } catch (const NonFiniteLoss& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  session.set_variable("bias", Tensor::from<float>({8}, std::vector<float>(8, 3e38f)));
  expect_named("[BiasAdd \"biased\"]");
  EXPECT_EQ(session.step(), 0);
  bad.data<float>()[3] = NAN;
  session.set_variable("bias", Tensor(Shape{8}));
  expect_named("\"x\"");
  expect_values(session.variable("quant/num_updates"), {0});
}

/// gamma and factors of 0 are among those of every recipe with such a vector (fill_chain_variables); here all are 0.
TEST_F(ChainSpecialValues, ZerosEverywhere) {
  for (const ChainRecipe& recipe : recipes()) {
    if (!recipe.scale && !recipe.normalises()) continue;
    ChainCase chain = chain_case(recipe);
    Session fast(chain.graph), reference(chain.graph, {.backend = Backend::kReference});
    for (Session* session : {&fast, &reference}) {
      fill_chain_variables(chain.graph, *session);
      for (const char* name : {"gamma", "scale"})
        if (const Node* node = chain.graph.find(name); node != nullptr && node->as<Variable>() != nullptr)
          session->set_variable(name, Tensor(Shape{5}));
    }
    const Feeds feeds = chain_feeds(chain, recipe, 1);
    const RunResult got = fast.run(chain.request, feeds), wanted = reference.run(chain.request, feeds);
    expect_alike(got.fetched[0], wanted.fetched[0], recipe.text() + ": y");
    for (std::size_t k = 0; k < got.gradients.size(); ++k)
      expect_alike(got.gradients[k], wanted.gradients[k],
                   recipe.text() + ": gradient of " + chain.request.gradient_targets[k].node->name());
    if (HasFailure()) return;
  }
}

TEST_F(ChainSpecialValues, AVarianceOfZero) {
  for (ChainRecipe recipe : recipes()) {
    if (!recipe.uses_batch()) continue;
    recipe.shape = {3, 5, 5, 5};  // not in sixteens: so epsilon is not 0
    ChainCase chain = chain_case(recipe);
    Session fast(chain.graph), reference(chain.graph, {.backend = Backend::kReference});
    for (Session* session : {&fast, &reference}) fill_chain_variables(chain.graph, *session);
    Feeds feeds = chain_feeds(chain, recipe, 1);
    for (auto& [output, tensor] : feeds)
      if (output.node->name() == "left") std::ranges::fill(tensor.values<float>(), 3.25f);
    const RunResult got = fast.run(chain.request, feeds), wanted = reference.run(chain.request, feeds);
    expect_alike(got.fetched[0], wanted.fetched[0], recipe.text() + ": y");
    const NamedTensors variables = fast.variables();
    for (const auto& [name, value] : reference.variables()) expect_alike(variables.at(name), value, name);
    if (HasFailure()) return;
  }
}

TEST_F(ChainSpecialValues, EmptyTensors) {
  for (ChainRecipe recipe : recipes()) {
    // BatchNorm and MaxPool refuse them.
    if (recipe.normalises() || recipe.pool) continue;
    for (const Shape& shape : {Shape{0, 4, 4, 3}, Shape{2, 4, 4, 0}, Shape{0, 5}, Shape{5, 0}}) {
      recipe.shape = shape;
      ChainCase chain = chain_case(recipe);
      Session fast(chain.graph), reference(chain.graph, {.backend = Backend::kReference});
      for (Session* session : {&fast, &reference}) fill_chain_variables(chain.graph, *session);
      const Feeds feeds = chain_feeds(chain, recipe, 1);
      const RunResult got = fast.run(chain.request, feeds), wanted = reference.run(chain.request, feeds);
      for (std::size_t k = 0; k < got.gradients.size(); ++k)
        expect_alike(got.gradients[k], wanted.gradients[k],
                     recipe.text() + ": gradient of " + chain.request.gradient_targets[k].node->name());
      NamedTensors variables = fast.variables();
      for (const auto& [name, value] : reference.variables())
        expect_alike(variables.at(name), value, recipe.text() + ": " + name);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace miniqat::layers::chain_special_values_test
