#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/engine/sharded_steps.h"
#include "core/engine/sweep.h"
#include "core/tensors/random.h"

namespace miniqat::gradient_tree_test {
namespace {

/// Plain loops over the levels.
float tree_sum(std::vector<float> values) {
  for (; values.size() > 1; values.resize(values.size() / 2))
    for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  return values.front();
}

/// Any order of the slices gives the same bits. A gradient whose memory does not stay may be overwritten at once.
TEST(GradientTreeTest, TheOrderDoesNotMatter) {
  Random random(1);
  for (const int leaves : {1, 2, 4, 8, 16}) {
    GradientTree tree(leaves, 2);
    for (int round = 0; round < 20; ++round) {
      std::vector<float> values(static_cast<std::size_t>(leaves));
      for (float& value : values) value = random.normal() * static_cast<float>(1 << random.below(20));
      std::vector<int> order(values.size());
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
      tree.begin();
      for (const int leaf : order) {
        Tensor gradient = Tensor::from<float>({1}, {values[static_cast<std::size_t>(leaf)]});
        const bool stays = random.below(2) == 0;
        auto halves = tree.add(1, leaf, gradient, stays);
        if (!stays && leaves > 1) *gradient.data<float>() = 1e30f;
        ASSERT_EQ(halves.has_value(), leaf == order.back());
        if (!halves) continue;
        EXPECT_EQ(halves->right.defined(), leaves > 1);
        if (leaves > 1) add_to(halves->left, halves->right);
        EXPECT_EQ(*halves->left.data<float>(), tree_sum(values)) << leaves;
      }
    }
  }
}

}  // namespace
}  // namespace miniqat::gradient_tree_test
