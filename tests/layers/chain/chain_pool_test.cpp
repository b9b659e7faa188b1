// Chains that end in max pooling, against the reference loops.
#include <array>
#include <cstring>

#include "core/threads/parallel.h"
#include "layers/chain/chain.h"
#include "tests/fewer_cases.h"
#include "tests/layers/chain/chain_case.h"
#include "tests/layers/op_runner.h"

namespace miniqat::layers::chain_pool_test {
namespace {

using namespace testing;

constexpr std::array<std::int64_t, 15> kChannels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 64, 100};

struct PoolCase {
  PoolAttributes pool;
  std::int64_t h, w;
};

/// Windows that cover the image, and that leave rows, columns or both over; SAME where it divides.
const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> all = {
      {{.window = {2, 2}}, 4, 6}, {{.window = {2, 2}}, 5, 6},
      {{.window = {2, 2}}, 6, 7}, {{.window = {2, 2}, .padding = Padding::kSame}, 4, 4},
      {{.window = {3, 3}}, 8, 7}, {{.window = {3, 3}, .strides = {3, 3}}, 9, 6},
      {{.window = {2, 3}}, 5, 8}, {{.window = {2, 3}, .padding = Padding::kSame}, 4, 9},
      {{.window = {3, 2}}, 3, 2}, {{.window = {1, 2}}, 3, 5},
      {{.window = {2, 2}}, 2, 2},
  };
  return all;
}

ChainRecipe pooled(ChainRecipe recipe, std::int64_t n, const PoolCase& pool, std::int64_t channels) {
  recipe.shape = {n, pool.h, pool.w, channels};
  recipe.pool = pool.pool;
  return recipe;
}

/// Everything that a chain with a pool accepts before it.
std::vector<ChainRecipe> recipes() {
  std::vector<ChainRecipe> all;
  for (ChainRecipe recipe : all_chains(true))
    for (std::size_t q = 0; q <= chain_quantizers().size(); ++q) {
      recipe.quantizer.reset();
      if (q < chain_quantizers().size()) recipe.quantizer = chain_quantizers()[q];
      if (recipe.shift != Shift::kNone || recipe.clamp != Clamp::kNone || recipe.quantizer) all.push_back(recipe);
    }
  return all;
}

TEST(ChainPool, AllPartsTogetherAreReference) {
  std::size_t next = 0;
  OneIn chosen(10);
  for (const ChainRecipe& recipe : recipes())
    for (const PoolCase& pool : pool_cases()) {
      const std::int64_t channels = kChannels[next++ * 4 % kChannels.size()];
      const ChainRecipe full = pooled(recipe, 1 + static_cast<std::int64_t>(next % 3), pool, channels);
      if (!chosen()) continue;
      const ChainCase chain = chain_case(full);
      expect_fused(chain.graph, plan_request(chain.request), chain.members);
      expect_chain_is_reference(full);
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(ChainPool, AllShapesAreReference) {
  OneIn chosen(10);
  for (const std::int64_t channels : kChannels)
    for (const PoolCase& pool : pool_cases())
      for (const std::int64_t n : {1, 2, 7, 17}) {
        const ChainRecipe recipe = {
            .shift = Shift::kBiasAdd, .clamp = Clamp::kRelu6, .quantizer = chain_quantizers()[4]};
        if (chosen()) expect_chain_is_reference(pooled(recipe, n, pool, channels));
        if (::testing::Test::HasFailure()) return;
      }
}

/// Also where the rows of one thread end in the middle of an image, and where they are shorter than a vector.
TEST(ChainPool, ThreadsShareTheWork) {
  OneIn chosen(6);
  for (const std::int64_t channels : {1, 2, 3, 6, 17, 32})
    for (const PoolCase& pool : pool_cases()) {
      const std::int64_t n = 33000 / (pool.h * pool.w * channels) + 2;
      const ChainRecipe recipe = {.shift = Shift::kBiasAdd, .clamp = Clamp::kRelu, .quantizer = chain_quantizers()[0]};
      if (chosen()) expect_chain_is_reference(pooled(recipe, n, pool, channels));
      if (::testing::Test::HasFailure()) return;
    }
}

/// Memory with a border of 64 bytes on both sides that must stay as it is.
class Guarded {
 public:
  explicit Guarded(const TensorSpec& spec)
      : bytes_(spec.bytes()), memory_(Shape{rounded() + 2 * kBorder}, DType::kUInt8) {
    std::memset(memory_.raw(), kFill, memory_.bytes());
    tensor_ = Tensor::view(memory_.data<std::uint8_t>() + kBorder, spec);
  }
  Tensor* tensor() { return &tensor_; }
  bool is_intact() const {
    const auto bytes = memory_.values<std::uint8_t>();
    const auto untouched = [](std::uint8_t byte) { return byte == kFill; };
    return std::ranges::all_of(bytes.first(kBorder), untouched) &&
           std::ranges::all_of(bytes.subspan(kBorder + bytes_), untouched);
  }

 private:
  static constexpr std::int64_t kBorder = 64;
  static constexpr std::uint8_t kFill = 0xA5;
  std::int64_t rounded() const { return static_cast<std::int64_t>((bytes_ + 63) / 64 * 64); }

  std::size_t bytes_;
  Tensor memory_;
  Tensor tensor_;
};

/// Vectors reach beyond a pixel with fewer channels, but not beyond the tensor.
TEST(ChainPool, NothingBehindATensorIsTouched) {
  set_thread_count(1);
  OneIn chosen(1);
  for (const std::int64_t channels : kChannels)
    for (const PoolCase& pool : pool_cases())
      for (std::int64_t n = 1; n <= 20; ++n) {
        if (!chosen()) continue;
        const Chain chain({.clamps = true, .low = 0, .pool = pool.pool}, "Relu+MaxPool");
        const std::vector<TensorSpec> inputs = {{Shape{n, pool.h, pool.w, channels}}};
        const Tensor x = random_tensor(inputs[0].shape, 1);
        const TensorSpec output = chain.infer(inputs)[0];
        const Tensor d_y = random_tensor(output.shape, 2);
        Guarded y(output), winners(chain.saved(inputs)[0]), d_x(inputs[0]);
        ForwardContext forward;
        forward.inputs = {&x};
        forward.outputs = {y.tensor()};
        forward.saved = {winners.tensor()};
        chain.forward(forward);
        chain.backward({.forward = &forward, .d_outputs = {&d_y}, .d_inputs = {d_x.tensor()}});
        ASSERT_TRUE(y.is_intact()) << inputs[0].shape << " to " << output.shape;
        ASSERT_TRUE(winners.is_intact()) << inputs[0].shape << " to " << output.shape;
        ASSERT_TRUE(d_x.is_intact()) << inputs[0].shape << " to " << output.shape;
      }
}

/// The gradient of a window goes to the first of its largest elements, as they are after rounding.
TEST(ChainPool, TiesGoToTheFirst) {
  for (const std::int64_t channels : {1, 5, 16}) {
    const ChainRecipe recipe =
        pooled({.clamp = Clamp::kRelu, .quantizer = chain_quantizers()[1]}, 2, {{.window = {2, 2}}, 8, 8}, channels);
    ChainCase chain = chain_case(recipe);
    Session fast(chain.graph), reference(chain.graph, {.backend = Backend::kReference});
    const Feeds feeds = chain_feeds(chain, recipe, 3);
    const RunResult got = fast.run(chain.request, feeds), wanted = reference.run(chain.request, feeds);
    for (std::size_t k = 0; k < got.gradients.size(); ++k)
      expect_same_bits(got.gradients[k], wanted.gradients[k], chain.request.gradient_targets[k].node->name());
  }
}

}  // namespace
}  // namespace miniqat::layers::chain_pool_test
