#include "tests/distributed/sum_check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "distributed/tensor_sums.h"

namespace miniqat::distributed {
namespace {

constexpr int kShards = 8;

using Values = std::vector<float>;

/// A shard's tensor. One number in eight is special; its shard depends on its place, so that no sum has two NaNs.
Values shard_values(std::int64_t length, int shard, std::uint64_t key) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(mix(key, shard));
  Values values(length);
  for (std::int64_t i = 0; i < length; ++i) {
    values[i] = random.normal() * std::exp2(static_cast<float>(random.below(40)));
    if (i % 8 != 0 || (i / 8) % kShards != shard) continue;
    const float specials[] = {std::bit_cast<float>(0x7fc12345u + static_cast<std::uint32_t>(i)), kInfinity, -0.0f,
                              1e30f};
    values[i] = specials[(i / 64) % 4];
  }
  if (length % 5 == 0) values.assign(length, shard == 3 ? 0.0f : -0.0f);
  return values;
}

/// Recursively, unlike the code that is tested.
Values tree_sum(std::int64_t length, int first, int count, std::uint64_t key) {
  if (count == 1) return shard_values(length, first, key);
  Values sum = tree_sum(length, first, count / 2, key);
  const Values right = tree_sum(length, first + count / 2, count / 2, key);
  for (std::int64_t i = 0; i < length; ++i) sum[i] = sum[i] + right[i];
  return sum;
}

void require_same(const Values& sum, const Values& expected, std::size_t tensor) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (std::bit_cast<std::uint32_t>(sum[i]) != std::bit_cast<std::uint32_t>(expected[i]))
      fail("tensor ", tensor, ", number ", i, " of ", sum.size(), ": ", sum[i], ", the tree has ", expected[i]);
}

}  // namespace

void check_tree_sums(Communicator& ranks, SumWay way, std::chrono::microseconds interval) {
  // The last bucket has 99 numbers; then 99 that seem to fill it, and more; then 1; then it is full; then there is
  // none.
  const std::vector<std::vector<std::int64_t>> steps = {
      {1, 250, 0, 777, 3, 64, 5, 1999}, {3000, 99, 50}, {1, 300, 1000}, {1999, 1}, {0},
      {1, 250, 0, 777, 3, 64, 5, 1999}};
  constexpr float kFactor = 0.125f;
  TensorSums sums(ranks, {.floats = 100, .factor = kFactor, .way = way, .interval = interval});
  const int own = kShards / ranks.size();
  for (std::size_t step = 0; step < steps.size(); ++step) {
    std::vector<Values> parts;
    for (const std::int64_t length : steps[step])
      parts.push_back(tree_sum(length, ranks.rank() * own, own, mix(step, length)));
    for (Values& part : parts) {
      sums.hand_over(part);
      std::this_thread::sleep_for(3 * interval);
    }
    sums.flush();
    sums.finish();
    for (std::size_t k = 0; k < parts.size(); ++k) {
      Values expected = tree_sum(std::ssize(parts[k]), 0, kShards, mix(step, parts[k].size()));
      for (float& value : expected) value *= kFactor;
      require_same(parts[k], expected, k);
    }
  }
}

void check_sums_move_on(Communicator& ranks) {
  Values ones(64, 1.0f);
  TensorSums sums(ranks, {.floats = 64, .way = SumWay::kHalves, .interval = std::chrono::microseconds(100)});
  wait_for(*ranks.barrier());
  sums.hand_over(ones);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  // Ends the thread's turn, and moves nothing.
  sums.abandon();
  require_same(ones, Values(64, static_cast<float>(ranks.size())), 0);
  wait_for(*ranks.barrier());
}

void check_small_talk(Communicator& ranks) {
  const auto require = [](bool right, const char* what) {
    if (!right) fail(what, " has the wrong result");
  };
  const auto rank = static_cast<float>(ranks.rank()), last = static_cast<float>(ranks.size() - 1);
  const std::vector<float> all = gathered(ranks, rank);
  for (std::size_t k = 0; k < all.size(); ++k) require(all[k] == static_cast<float>(k), "gathered");
  const std::string word = "the word of rank 0";
  require(broadcast_text(ranks, ranks.rank() == 0 ? word : "another") == word, "broadcast_text");
  float value = rank;
  wait_for(*ranks.broadcast(std::as_writable_bytes(std::span(&value, 1)), ranks.size() - 1));
  require(value == last, "broadcast");
  wait_for(*ranks.barrier());
}

}  // namespace miniqat::distributed
