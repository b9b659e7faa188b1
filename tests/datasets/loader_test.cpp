#include "datasets/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/errors.h"

namespace miniqat::datasets::loader_test {
namespace {

using testing::error_of;
using testing::mentions;

/// n images of 2x2x1 whose every byte is the example's number; labels are that modulo 10.
Dataset numbered(int n) {
  Dataset dataset{.name = "numbered",
                  .images = Tensor(Shape{n, 2, 2, 1}, DType::kUInt8),
                  .labels = Tensor(Shape{n}, DType::kInt32),
                  .scale = 0.5f,
                  .zero_point = 3};
  for (int i = 0; i < n; ++i) {
    std::fill_n(dataset.images.data<std::uint8_t>() + 4 * i, 4, static_cast<std::uint8_t>(i));
    dataset.labels.data<std::int32_t>()[i] = i % 10;
  }
  return dataset;
}

/// Which examples of numbered() a batch holds; checks pixels and labels on the way.
template <class AnyBatch>
std::vector<int> examples(const AnyBatch& batch) {
  std::vector<int> numbers;
  const Tensor images = numbers_of(batch.images);
  for (std::int64_t k = 0; k < batch.labels.elements(); ++k) {
    EXPECT_EQ(batch.images.template data<std::uint8_t>()[4 * k] % 10, batch.labels.template data<std::int32_t>()[k]);
    const float* pixels = images.data<float>() + 4 * k;
    const int number = static_cast<int>(pixels[0] / 0.5f) + 3;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(pixels[i], static_cast<float>(number - 3) * 0.5f);
    EXPECT_EQ(batch.labels.template data<std::int32_t>()[k], number % 10);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::vector<int>> run(const Loader::Options& options, int batches, int n = 103) {
  Loader loader(numbered(n), options);
  std::vector<std::vector<int>> result;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = loader.next();
    EXPECT_EQ(batch.index, options.first_batch + i);
    result.push_back(examples(batch));
  }
  return result;
}

TEST(Loader, SameSeedSameBatches) {
  EXPECT_EQ(run({.batch_size = 10, .seed = 5}, 35), run({.batch_size = 10, .seed = 5}, 35));
  EXPECT_NE(run({.batch_size = 10, .seed = 5}, 1), run({.batch_size = 10, .seed = 6}, 1));
}

TEST(Loader, ResumesAnywhereAsIfNeverStopped) {
  const auto whole = run({.batch_size = 10}, 40);
  for (const int stop : {1, 9, 10, 11, 25, 30}) {
    const auto rest = run({.batch_size = 10, .first_batch = stop}, 40 - stop);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + stop)) << stop;
  }
}

TEST(Loader, EpochsHoldNoExampleTwiceAndDifferFromEachOther) {
  const auto batches = run({.batch_size = 10}, 30);
  std::set<std::vector<int>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> order;
    for (int i = 0; i < 10; ++i) {
      const std::vector<int>& batch = batches[epoch * 10 + i];
      order.insert(order.end(), batch.begin(), batch.end());
    }
    orders.insert(order);
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 100u);
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(Loader, AnEpochThatDividesEvenlyHoldsEveryExample) {
  const auto batches = run({.batch_size = 25}, 4, 100);
  std::set<int> seen;
  for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Loader, WithoutShufflingKeepsTheOrderInEveryEpoch) {
  const auto batches = run({.batch_size = 4, .shuffle = false}, 4, 9);
  EXPECT_EQ(batches, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(Loader, ABatchIsValidUntilTheNextCallAndBuffersAreRecycled) {
  Loader loader(numbered(60), {.batch_size = 2});
  std::set<const void*> buffers;
  for (int i = 0; i < 300; ++i) {
    const Batch& batch = loader.next();
    const std::vector<int> before = examples(batch);
    if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(examples(batch), before);
    buffers.insert(batch.images.raw());
  }
  EXPECT_EQ(buffers.size(), 3u);
}

std::ptrdiff_t thread_total() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/task"),
                               std::filesystem::directory_iterator{});
}

TEST(Loader, StopsAtAnyTimeAndItsThreadsAreGone) {
  // The first may start threads that stay, OpenMP's.
  Loader(numbered(50), {.batch_size = 8}).next();
  const std::ptrdiff_t before = thread_total();
  for (int taken = 0; taken < 60; ++taken) {
    Loader loader(numbered(50), {.batch_size = 8});
    EXPECT_GT(thread_total(), before);
    for (int i = 0; i < taken % 12; ++i) EXPECT_EQ(examples(loader.next()).size(), 8u);
  }
  // A thread that has ended may stand in /proc for a moment.
  for (int wait = 0; wait < 200 && thread_total() > before; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(thread_total(), before);
}

TEST(Loader, OutlivesTheDataSetItWasGiven) {
  auto dataset = std::make_unique<Dataset>(numbered(20));
  Loader loader(*dataset, {.batch_size = 5, .shuffle = false});
  dataset.reset();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(examples(loader.next()).front(), i % 4 * 5);
}

TEST(Loader, PassesOnWhatStoppedTheThread) {
  Dataset dataset = numbered(12);
  dataset.labels.data<std::int32_t>()[9] = 10;
  Loader loader(dataset, {.batch_size = 4, .shuffle = false});
  loader.next();
  loader.next();
  for (int again = 0; again < 2; ++again)
    EXPECT_TRUE(mentions(error_of([&] { loader.next(); }), {"example 9", "label 10"}));
}

TEST(Loader, RefusesWhatCannotMakeABatch) {
  const Dataset dataset = numbered(20);
  EXPECT_TRUE(mentions(error_of([&] { Loader(dataset, {.batch_size = 21}); }), {"numbered", "20", "21"}));
  EXPECT_TRUE(mentions(error_of([&] { Loader(dataset, {.batch_size = 0}); }), {"batch size"}));
  EXPECT_TRUE(mentions(error_of([&] { Loader(dataset, {.batch_size = 2, .first_batch = -1}); }), {"-1"}));
  EXPECT_TRUE(mentions(error_of([&] { Loader(dataset, {.batch_size = 2, .first_batch = INT64_MAX}); }), {"at most"}));
  EXPECT_TRUE(mentions(error_of([] { Loader(Dataset{}, {}); }), {"images"}));
  EXPECT_EQ(Loader(dataset, {.batch_size = 6}).batches_per_epoch(), 3);
}

TEST(ForEachBatch, GoesInOrderAndPadsTheLastBatch) {
  std::vector<std::vector<int>> batches;
  std::vector<std::int64_t> firsts, valids;
  for_each_batch(numbered(10), 4, [&](const EvaluationBatch& batch) {
    batches.push_back(examples(batch));
    firsts.push_back(batch.first);
    valids.push_back(batch.valid);
  });
  EXPECT_EQ(batches, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 9, 9}}));
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 4, 8}));
  EXPECT_EQ(valids, (std::vector<std::int64_t>{4, 4, 2}));
}

TEST(ForEachBatch, GivesTheChosenBatches) {
  std::vector<std::int64_t> firsts;
  for_each_batch(numbered(50), 4, [&](const EvaluationBatch& batch) { firsts.push_back(batch.first); },
                 {.first = 2, .last = 9, .stride = 3});
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{8, 20, 32}));
  for_each_batch(numbered(50), 4, [&](const EvaluationBatch& batch) { firsts.push_back(batch.valid); }, {.first = 12});
  EXPECT_EQ(firsts.back(), 2);
  EXPECT_EQ(firsts.size(), 4);
}

TEST(ForEachBatch, WorksWithABatchLargerThanTheDataSetAndRefusesNone) {
  int calls = 0;
  for_each_batch(numbered(3), 5, [&](const EvaluationBatch& batch) {
    ++calls;
    EXPECT_EQ(batch.valid, 3);
    EXPECT_EQ(examples(batch), (std::vector<int>{0, 1, 2, 2, 2}));
  });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(
      mentions(error_of([] { for_each_batch(numbered(3), 0, [](const EvaluationBatch&) {}); }), {"batch size"}));
}

}  // namespace
}  // namespace miniqat::datasets::loader_test
