#include "tests/layers/chain/chain_case.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/engine/plan/plan.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "quantize/fold/batch_norm_fold.h"
#include "tests/layers/op_runner.h"

namespace miniqat::testing {
namespace {

constexpr std::array<const char*, 7> kShifts = {"",      " BiasAdd",    " Add v",     " v Add",
                                                " Norm", " MovingNorm", " FrozenNorm"};
constexpr std::array<const char*, 3> kAddends = {"", " + a", " a +"};
constexpr std::array<const char*, 3> kClamps = {"", " Relu", " Relu6"};

/// Whole multiples of `step`, from -count to count of them.
float multiple(Random& random, float step, std::uint64_t count) {
  return step * (static_cast<float>(random.below(2 * count + 1)) - static_cast<float>(count));
}

void fill_multiples(Tensor& tensor, std::uint64_t key, float step, std::uint64_t count) {
  Random random(key);
  for (float& value : tensor.values<float>()) value = multiple(random, step, count);
}

/// Deviations of mean square 4: so sigma is 2, and dividing by it is exact.
constexpr std::array<float, 16> kDeviations = {1, 1, 1, 1, 1, 3, 3, 3, -1, -1, -1, -1, -1, -3, -3, -3};

/// Every channel has a whole mean and a variance of 4; a multiple of 16 rows.
void fill_normal(Tensor& x, std::uint64_t key) {
  Random random(key);
  const std::int64_t channels = x.shape().channels(), rows = x.elements() / channels;
  std::vector<float> column(rows);
  for (std::int64_t c = 0; c < channels; ++c) {
    const float mean = multiple(random, 1, 3);
    for (std::int64_t r = 0; r < rows; ++r) column[r] = mean + kDeviations[r % 16];
    for (std::int64_t r = rows - 1; r > 0; --r) std::swap(column[r], column[random.below(r + 1)]);
    for (std::int64_t r = 0; r < rows; ++r) x.data<float>()[r * channels + c] = column[r];
  }
}

/// Adds the recipe's nodes one behind the other.
class CaseBuilder {
 public:
  CaseBuilder(const ChainRecipe& recipe, ChainCase& chain) : recipe_(recipe), chain_(chain) {}

  void build() {
    using namespace layers;
    Graph& g = chain_.graph;
    const Shape& shape = recipe_.shape;
    y_ = sub(g, "x", placeholder(g, "left", shape), placeholder(g, "right", shape));
    const bool norm = recipe_.normalises();
    const Output gamma = norm ? vector("gamma", true) : Output{},
                 variance = norm ? vector("variance", false) : Output{};
    if (recipe_.scale) {
      const Output factor =
          norm ? g.add("scale",
                       quantize::BatchNormScale::make(quantize::BatchNormScaleAttributes{.epsilon = 0, .floor = 0.25}),
                       {gamma, variance})
                     .output(1)
               : vector("scale", true);
      take(mul(g, "mul", y_, factor));
    }
    if (recipe_.second_scale) take(mul(g, "second_mul", vector("second_scale", true), y_));
    if (norm)
      take(batch_norm(g, "norm", y_, gamma, vector("beta", true), vector("mean", false), variance,
                      // So much that the gradients of few rows don't cancel.
                      {.epsilon = recipe_.is_exact() ? 0 : 0.5,
                       .decay = 0.75,
                       .is_training = recipe_.shift != Shift::kMovingNorm,
                       .freeze_delay = recipe_.shift == Shift::kFrozenNorm ? 0 : -1}));
    if (recipe_.shift == Shift::kBiasAdd) take(bias_add(g, "bias_add", y_, vector("bias", true)));
    if (recipe_.shift == Shift::kAddVector) take(add(g, "add_vector", y_, vector("bias", true)));
    if (recipe_.shift == Shift::kVectorAdd) take(add(g, "add_vector", vector("bias", true), y_));
    if (recipe_.addend != Addend::kNone) {
      const Output other = placeholder(g, "addend", shape);
      take(recipe_.addend == Addend::kRight ? add(g, "add", y_, other) : add(g, "add", other, y_));
    }
    if (recipe_.clamp == Clamp::kRelu) take(relu(g, "relu", y_));
    if (recipe_.clamp == Clamp::kRelu6) take(relu6(g, "relu", y_));
    if (recipe_.quantizer) take(quantize::fake_quant(g, "quant", y_, *recipe_.quantizer));
    if (recipe_.pool) take(max_pool(g, "pool", y_, *recipe_.pool));
    chain_.y = y_;
    ask();
  }

 private:
  Output vector(const char* name, bool trainable) {
    return layers::variable(chain_.graph, name, {recipe_.shape.channels()}, Initializer::constant(0), trainable);
  }

  void take(Output output) {
    y_ = output;
    chain_.members.push_back(output.node);
  }

  void ask() {
    Graph& g = chain_.graph;
    const Output loss = layers::mul(g, "loss", y_, layers::placeholder(g, "weighting", y_.shape()));
    chain_.request = {.fetches = {y_}, .gradients_of = loss, .training = true};
    for (const Node* node : g.nodes()) {
      const auto* variable = node->as<Variable>();
      if (node->type() == "Placeholder" || (variable != nullptr && variable->trainable))
        chain_.request.gradient_targets.push_back(node->output());
    }
  }

  const ChainRecipe& recipe_;
  ChainCase& chain_;
  Output y_;
};

struct Trace {
  std::vector<RunResult> runs;
  NamedTensors variables;
};

/// Two training steps, then an evaluation in a session of its own, with the statistics as they were at first.
Trace trace(const ChainRecipe& recipe, const SessionOptions& options) {
  ChainCase chain = chain_case(recipe);
  Session session(chain.graph, options), evaluation(chain.graph, options);
  fill_chain_variables(chain.graph, session);
  fill_chain_variables(chain.graph, evaluation);
  Trace result;
  // After a step, the factor that precedes a batch norm is no longer exact.
  const std::uint64_t steps = recipe.scale && recipe.uses_batch() ? 1 : 2;
  for (std::uint64_t step = 0; step < steps; ++step)
    result.runs.push_back(session.run(chain.request, chain_feeds(chain, recipe, step)));
  RunRequest request = chain.request;
  request.training = false;
  result.runs.push_back(evaluation.run(request, chain_feeds(chain, recipe, 7)));
  for (const auto& [name, value] : session.variables()) result.variables[name] = value.clone();
  return result;
}

void expect_same(const Trace& actual, const Trace& expected, const ChainRecipe& recipe, bool same_bits) {
  const ChainCase chain = chain_case(recipe);
  for (std::size_t r = 0; r < expected.runs.size(); ++r) {
    const std::string run = concat(recipe.text(), ", run ", r, ": ");
    if (same_bits)
      expect_same_bits(actual.runs[r].fetched[0], expected.runs[r].fetched[0], run + "y");
    else
      expect_close(actual.runs[r].fetched[0], expected.runs[r].fetched[0], run + "y", 1e-5);
    for (std::size_t k = 0; k < expected.runs[r].gradients.size(); ++k) {
      const std::string& name = chain.request.gradient_targets[k].node->name();
      // A chain keeps the roundings in 16 bits, and they may cancel.
      const double tolerance = name.starts_with("quant/") ? 5e-3 : 2e-5;
      expect_close(actual.runs[r].gradients[k], expected.runs[r].gradients[k], concat(run, "gradient of ", name),
                   tolerance);
    }
  }
  for (const auto& [name, value] : expected.variables)
    expect_close(actual.variables.at(name), value, concat(recipe.text(), ": ", name, " after the steps"), 1e-5);
}

}  // namespace

std::string ChainRecipe::text() const {
  std::string parts = concat(shape, scale ? " Mul" : "", second_scale ? " Mul" : "", kShifts[static_cast<int>(shift)],
                             kAddends[static_cast<int>(addend)], kClamps[static_cast<int>(clamp)]);
  if (quantizer)
    parts += concat(" FakeQuant(", quantizer->bits, quantizer->symmetric ? " symmetric" : "",
                    quantizer->narrow_range ? " narrow" : "", quantizer->delay > 0 ? " delayed" : "", " ",
                    quantize::traits_of(quantizer->range).text, ")");
  if (pool) parts += concat(" MaxPool(", pool->window[0], "x", pool->window[1], ")");
  return parts;
}

ChainCase chain_case(const ChainRecipe& recipe) {
  ChainCase chain;
  CaseBuilder(recipe, chain).build();
  return chain;
}

Feeds chain_feeds(const ChainCase& chain, const ChainRecipe& recipe, std::uint64_t key) {
  Feeds feeds;
  for (const Node* node : chain.graph.nodes()) {
    if (node->type() != "Placeholder") continue;
    Tensor tensor(node->output().shape());
    const std::uint64_t own = mix(key, hash_text(node->name()));
    if (recipe.uses_batch() && recipe.is_exact() && node->name() == "left")
      fill_normal(tensor, own);
    else if (recipe.uses_batch() && node->name() == "right")
      std::ranges::fill(tensor.values<float>(), 0.5f);
    else
      fill_multiples(tensor, own, node->name() == "weighting" ? 0.5f : 0.125f, 24);
    feeds.emplace_back(node->output(), tensor);
  }
  return feeds;
}

void fill_chain_variables(const Graph& graph, Session& session) {
  constexpr std::array<float, 6> kFactors = {1, -0.5f, 2, 0, 0.5f, -1};
  for (auto& [name, value] : session.variables()) {
    Tensor numbers(value.shape());
    const std::span<float> values = numbers.values<float>();
    if (name == "gamma" || name == "scale" || name == "second_scale")
      for (std::size_t c = 0; c < values.size(); ++c) values[c] = kFactors[c % kFactors.size()];
    else if (name == "variance")
      std::ranges::fill(values, 4.0f);
    else if (name == "quant/min" || name == "quant/max")
      std::ranges::fill(values, name == "quant/min" ? -0.75f : 2.5f);
    else if (graph.find(name) != nullptr)
      fill_multiples(numbers, hash_text(name), name == "mean" ? 1.0f : 0.25f, name == "mean" ? 2 : 8);
    value.assign(numbers);
  }
}

void expect_chain_is_reference(const ChainRecipe& recipe) {
  const bool rounds = recipe.quantizer && recipe.quantizer->delay == 0;
  const Trace same_precision = trace(recipe, {.backend = Backend::kReference});
  for (const int threads : {1, 2, 3}) {
    // Smaller ones are one thread's work.
    if (threads != 2 && recipe.shape.elements() <= kPointwiseGrain) continue;
    set_thread_count(threads);
    const Trace fast = trace(recipe, {});
    if (recipe.is_exact()) expect_same(fast, same_precision, recipe, true);
    // In double the quantizer's scale has other digits: what lies midway between two of its numbers may go another way.
    if (!rounds)
      expect_same(fast, trace(recipe, {.backend = Backend::kReference, .precision = DType::kFloat64}), recipe, false);
    if (::testing::Test::HasFatalFailure() || ::testing::Test::HasNonfatalFailure()) {
      ADD_FAILURE() << threads << " threads";
      break;
    }
    const Trace again = trace(recipe, {});
    for (std::size_t r = 0; r < fast.runs.size(); ++r) {
      expect_same_bits(again.runs[r].fetched[0], fast.runs[r].fetched[0], recipe.text() + ": y, again");
      for (std::size_t k = 0; k < fast.runs[r].gradients.size(); ++k)
        expect_same_bits(again.runs[r].gradients[k], fast.runs[r].gradients[k], recipe.text() + ": gradients, again");
    }
  }
}

PlanRequest plan_request(const RunRequest& request, std::int64_t quantization_step) {
  return {.fetches = request.fetches,
          .gradients_of = request.gradients_of,
          .gradient_targets = request.gradient_targets,
          .training = request.training,
          .quantization_step = quantization_step};
}

void expect_fused(const Graph& graph, const PlanRequest& request, const std::vector<const Node*>& members) {
  const auto plan = compile_plan(graph, request);
  const auto found = std::ranges::find_if(plan->forward, [&](const Plan::ForwardStep& step) {
    return std::ranges::find(step.members, members.back()) != step.members.end();
  });
  ASSERT_NE(found, plan->forward.end());
  EXPECT_EQ(found->members, members);
  EXPECT_NE(found->op, &members.back()->op());
}

void expect_alone(const Graph& graph, const PlanRequest& request, Output output) {
  const auto plan = compile_plan(graph, request);
  const auto found = std::ranges::find(plan->forward, &output.node->op(), &Plan::ForwardStep::op);
  EXPECT_NE(found, plan->forward.end()) << output.name();
}

std::vector<ChainRecipe> all_chains(bool pools) {
  std::vector<ChainRecipe> recipes;
  for (const bool scale : {false, true})
    for (const Shift shift : {Shift::kNone, Shift::kBiasAdd, Shift::kAddVector, Shift::kVectorAdd, Shift::kNorm,
                              Shift::kMovingNorm, Shift::kFrozenNorm})
      for (const Addend addend : {Addend::kNone, Addend::kRight, Addend::kLeft})
        for (const Clamp clamp : {Clamp::kNone, Clamp::kRelu, Clamp::kRelu6}) {
          ChainRecipe recipe = {.scale = scale, .shift = shift, .addend = addend, .clamp = clamp};
          if (!pools || !(scale || addend != Addend::kNone || recipe.normalises())) recipes.push_back(recipe);
          recipe.second_scale = true;
          if (!pools && scale && !recipe.normalises()) recipes.push_back(recipe);
        }
  return recipes;
}

const std::vector<quantize::FakeQuantAttributes>& chain_quantizers() {
  static const std::vector<quantize::FakeQuantAttributes> all = {
      {.bits = 8, .ema_decay = 0.5},
      {.bits = 2, .ema_decay = 0.5},
      {.bits = 3, .narrow_range = true, .ema_decay = 0.5},
      {.bits = 4, .symmetric = true, .ema_decay = 0.5},
      {.bits = 5, .narrow_range = true, .symmetric = true, .ema_decay = 0.5},
      {.bits = 6, .ema_decay = 0.5, .delay = 1000},
      {.bits = 7, .range = quantize::RangeKind::kLastValue},
      {.bits = 4, .range = quantize::RangeKind::kAllValues},
      {.bits = 8, .narrow_range = true, .symmetric = true, .ema_decay = 0.999},
      {.bits = 3, .range = quantize::RangeKind::kLearned},
      {.bits = 4, .symmetric = true, .range = quantize::RangeKind::kLearned},
      {.bits = 2, .range = quantize::RangeKind::kLearned, .delay = 1000},
  };
  return all;
}

void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.spec(), expected.spec()) << what;
  for (std::int64_t i = 0; i < actual.elements(); ++i) {
    const float a = actual.data<float>()[i], e = expected.data<float>()[i];
    ASSERT_TRUE(a == e || (std::isnan(a) && std::isnan(e)))
        << what << ", element " << i << " of " << actual.shape() << ": " << a << " instead of " << e;
  }
}

}  // namespace miniqat::testing
