// Chains without a pool: whatever a chain accepts, against the reference loops.
#include "layers/chain/chain.h"

#include <array>

#include "core/engine/plan/plan.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "tests/digest.h"
#include "tests/fewer_cases.h"
#include "tests/layers/chain/chain_case.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::chain_test {
namespace {

using namespace testing;
using quantize::FakeQuantAttributes;

constexpr std::array<std::int64_t, 14> kChannels = {1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 33, 64, 100};

/// Below, at and above a block of the mask (512 elements) and what is worth a second thread (16384), of rank 2 and 4;
/// mostly with rows in sixteens, so that batch statistics can be exact.
std::vector<Shape> shapes_for(std::int64_t channels) {
  const auto sixteens = [=](std::int64_t elements) { return (elements / channels + 16) / 16 * 16; };
  std::vector<Shape> shapes = {{16, channels},       {1, 4, 4, channels}, {sixteens(513), channels},
                               {2, 5, 7, channels},  {63, channels},      {sixteens(2000) / 16, 4, 4, channels},
                               {1, 1, 32, channels}, {5, channels}};
  if (512 % channels == 0) shapes.push_back({512 / channels, channels});
  return shapes;
}

Shape large_shape(std::int64_t channels) { return {2, 8, 16384 / 16 / channels + 3, channels}; }

bool is_chain(const ChainRecipe& recipe) {
  const int nodes = (recipe.addend != Addend::kNone) + (recipe.clamp != Clamp::kNone) + recipe.quantizer.has_value();
  return recipe.scale || recipe.shift != Shift::kNone || nodes > 1;
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t channels : kChannels)
    for (const Shape& shape : shapes_for(channels)) all.push_back(shape);
  return all;
}

/// With every quantizer and without; of the shapes each gets another.
template <class Body>
void for_chains(const Body& body) {
  OneIn chosen(6);
  const std::vector<Shape> all = shapes();
  std::size_t next = 0;
  for (ChainRecipe recipe : all_chains(false))
    for (std::size_t q = 0; q <= chain_quantizers().size(); ++q) {
      recipe.quantizer.reset();
      if (q < chain_quantizers().size()) recipe.quantizer = chain_quantizers()[q];
      recipe.shape = all[next++ * 7 % all.size()];
      if (is_chain(recipe) && chosen()) body(recipe);
    }
}

TEST(Chain, AllPartsTogetherAreReference) {
  int compared = 0;
  for_chains([&](ChainRecipe recipe) {
    // Rounding what is not exact says nothing.
    if (!recipe.is_exact() && recipe.quantizer) recipe.shape = {32, recipe.shape.channels()};
    if (!::testing::Test::HasFailure()) expect_chain_is_reference(recipe), ++compared;
  });
  EXPECT_GE(compared, 150 / fewer_cases());
}

TEST(Chain, AllShapesAreReference) {
  OneIn chosen(10);
  for (const std::int64_t channels : kChannels)
    for (Shape shape : shapes_for(channels))
      for (const Shift shift : {Shift::kNone, Shift::kBiasAdd, Shift::kNorm})
        for (const bool scale : {false, true}) {
          ChainRecipe recipe = {
              .shape = shape, .scale = scale, .shift = shift, .addend = Addend::kRight, .clamp = Clamp::kRelu6};
          if (recipe.is_exact()) recipe.quantizer = chain_quantizers()[0];
          if (!::testing::Test::HasFailure() && chosen()) expect_chain_is_reference(recipe);
          recipe.addend = Addend::kNone;
          if (!::testing::Test::HasFailure() && chosen()) expect_chain_is_reference(recipe);
        }
}

TEST(Chain, ThreadsShareTheWork) {
  OneIn chosen(8);
  for (const std::int64_t channels : kChannels)
    for (const Shift shift : {Shift::kNone, Shift::kVectorAdd, Shift::kNorm, Shift::kFrozenNorm})
      for (const bool scale : {false, true}) {
        const ChainRecipe recipe = {.shape = large_shape(channels),
                                    .scale = scale,
                                    .shift = shift,
                                    .addend = channels % 2 == 0 ? Addend::kLeft : Addend::kNone,
                                    .clamp = Clamp::kRelu,
                                    .quantizer = chain_quantizers()[3]};
        ASSERT_GT(recipe.shape.elements(), 16384);
        if (!::testing::Test::HasFailure() && chosen()) expect_chain_is_reference(recipe);
      }
}

TEST(Chain, ThePlanRunsItAsOne) {
  for_chains([&](const ChainRecipe& recipe) {
    if (::testing::Test::HasFailure()) return;
    SCOPED_TRACE(recipe.text());
    const ChainCase chain = chain_case(recipe);
    const auto expect_one_step = [&](const PlanRequest& request) {
      // These have the chain's kernels themselves.
      const bool own_op = recipe.shift == Shift::kBiasAdd || recipe.normalises();
      if (own_op && chain.members.size() == 1)
        expect_alone(chain.graph, request, chain.y);
      else
        expect_fused(chain.graph, request, chain.members);
    };
    PlanRequest request = plan_request(chain.request);
    expect_one_step(request);
    request.training = false;
    expect_one_step(request);
    request.gradients_of.reset();
    request.gradient_targets.clear();
    expect_one_step(request);
  });
}

/// In an evaluation graph the range is taken as it is, which is a chain as long as nothing is differentiated.
TEST(Chain, EvaluationGraphsAreReference) {
  for (const Shift shift : {Shift::kBiasAdd, Shift::kMovingNorm})
    for (const std::int64_t bits : {2, 5, 8}) {
      const ChainRecipe recipe = {.shape = {3, 5, 5, 9},
                                  .shift = shift,
                                  .clamp = Clamp::kRelu6,
                                  .quantizer = FakeQuantAttributes{.bits = bits, .is_training = false}};
      ChainCase chain = chain_case(recipe);
      const RunRequest request = {.fetches = {chain.y}};
      expect_fused(chain.graph, plan_request(request), chain.members);
      Session fast(chain.graph), reference(chain.graph, {.backend = Backend::kReference});
      for (Session* session : {&fast, &reference}) fill_chain_variables(chain.graph, *session);
      const Feeds feeds = chain_feeds(chain, recipe, 1);
      expect_same_bits(fast.run(request, feeds).fetched[0], reference.run(request, feeds).fetched[0], recipe.text());
    }
}

/// What backward has left of y when y rests as bytes in between: the sum over the gradient that arrives at a factor
/// of y's is y itself.
void expect_unpacked(ChainRecipe recipe, bool packs) {
  ChainCase chain = chain_case(recipe);
  Graph& g = chain.graph;
  // Others use the memory meanwhile.
  Output flow = g.at("loss").output();
  for (int i = 0; i < 3; ++i) flow = square(g, "square" + std::to_string(i), flow);
  const RunRequest request = {
      .gradients_of = flow, .gradient_targets = {g.at("weighting").output(), g.at("left").output()}, .training = true};
  EXPECT_EQ(!compile_plan(g, plan_request(request))->packed.empty(), packs) << recipe.text();
  Session fast(g), reference(g, {.backend = Backend::kReference});
  for (Session* session : {&fast, &reference}) fill_chain_variables(g, *session);
  for (const std::uint64_t key : {1, 2}) {
    const Feeds feeds = chain_feeds(chain, recipe, key);
    const RunResult got = fast.run(request, feeds), wanted = reference.run(request, feeds);
    for (std::size_t k = 0; k < 2; ++k)
      expect_same_bits(got.gradients[k], wanted.gradients[k], recipe.text() + ", gradient " + std::to_string(k));
  }
}

TEST(Chain, PacksWhatBackwardReadsAgain) {
  set_thread_count(2);
  OneIn chosen(4);
  for (const FakeQuantAttributes& quantizer : chain_quantizers())
    for (const Addend addend : {Addend::kNone, Addend::kLeft})
      for (const bool pools : {false, true}) {
        ChainRecipe recipe = {
            .shape = {16, 32, 33, 9}, .addend = addend, .clamp = Clamp::kRelu6, .quantizer = quantizer};
        if ((pools && addend != Addend::kNone) || !chosen()) continue;
        if (pools) recipe.shape = {64, 32, 33, 9}, recipe.pool = PoolAttributes{.window = {2, 2}};
        expect_unpacked(recipe, quantizer.delay == 0);
        if (::testing::Test::HasFailure()) return;
      }
  for (const std::int64_t bits : {9, 16})
    expect_unpacked({.shape = {16, 32, 33, 9}, .clamp = Clamp::kRelu, .quantizer = FakeQuantAttributes{.bits = bits}},
                    false);
}

TEST(ChainBits, DISABLED_Print) {
  set_thread_count(2);
  Digest digest;
  std::size_t next = 0;
  for (const bool pools : {false, true})
    for (ChainRecipe recipe : all_chains(pools)) {
      recipe.shape = {5, 12, 12, kChannels[next % kChannels.size()]};
      recipe.quantizer = chain_quantizers()[next++ % chain_quantizers().size()];
      if (pools) recipe.pool = PoolAttributes{.window = {2, 3}};
      ChainCase chain = chain_case(recipe);
      Session session(chain.graph);
      fill_chain_variables(chain.graph, session);
      Feeds feeds;
      for (const auto& [output, tensor] : chain_feeds(chain, recipe, 1))
        feeds.emplace_back(output, random_tensor(tensor.shape(), hash_text(output.node->name()), -3, 5));
      const RunResult result = session.run(chain.request, feeds);
      for (const Tensor& tensor : result.fetched) digest.add(tensor.values<float>());
      for (const Tensor& tensor : result.gradients) digest.add(tensor.values<float>());
      for (const auto& [name, value] : session.variables()) digest.add(value.values<float>());
    }
  digest.print();
}

TEST(ChainBits, AreTheSameOnEveryInstructionSet) { expect_same_on_all_instruction_sets("ChainBits.DISABLED_Print"); }

}  // namespace
}  // namespace miniqat::layers::chain_test
