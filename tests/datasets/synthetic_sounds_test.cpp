#include "datasets/synthetic_sounds.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/threads/parallel.h"
#include "datasets/known_datasets.h"
#include "datasets/synthetic_hums.h"
#include "tests/datasets/numbers/described.h"
#include "tests/errors.h"

namespace miniqat::datasets::synthetic_sounds_test {
namespace {

std::vector<float> numbers_in(const Dataset& set) {
  const auto values = set.images.values<float>();
  return {values.begin(), values.end()};
}

/// The mean example of each class.
std::map<std::int32_t, std::vector<double>> means_of(const Dataset& set) {
  std::map<std::int32_t, std::vector<double>> means;
  std::map<std::int32_t, int> counts;
  const std::int64_t size = set.example_shape().elements();
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const std::int32_t label = set.labels.values<std::int32_t>()[i];
    std::vector<double>& mean = means[label];
    mean.resize(size);
    ++counts[label];
    for (std::int64_t k = 0; k < size; ++k) mean[k] += set.images.values<float>()[i * size + k];
  }
  for (auto& [label, mean] : means)
    for (double& number : mean) number /= counts[label];
  return means;
}

double distance(std::span<const float> example, const std::vector<double>& mean) {
  double sum = 0;
  for (std::size_t k = 0; k < mean.size(); ++k) sum += std::pow(example[k] - mean[k], 2);
  return sum / static_cast<double>(mean.size());
}

/// The share of test examples that are nearest to the mean of their own class.
double share_by_means(const Splits& splits) {
  const auto means = means_of(splits.train);
  const std::int64_t size = splits.test.example_shape().elements();
  int right = 0;
  for (std::int64_t i = 0; i < splits.test.size(); ++i) {
    const auto example = splits.test.images.values<float>().subspan(i * size, size);
    std::pair<double, std::int32_t> best{INFINITY, -1};
    for (const auto& [label, mean] : means) best = std::min(best, std::pair(distance(example, mean), label));
    right += best.second == splits.test.labels.values<std::int32_t>()[i] ? 1 : 0;
  }
  return right / static_cast<double>(splits.test.size());
}

TEST(SyntheticSounds, AreEightClassesByTheFrontEndThatIsAskedFor) {
  const Splits splits = load("synthetic-sounds", {}, {.train_size = 80, .test_size = 16});
  EXPECT_EQ(splits.train.images.shape(), (Shape{80, 49, 10}));
  EXPECT_EQ(splits.test.size(), 16);
  EXPECT_EQ(splits.train.classes, 8);
  EXPECT_EQ(splits.train.class_name(7), "oo");
  EXPECT_TRUE(splits.train.standard);
  EXPECT_FALSE(splits.train.groups.defined());
  const auto with = [](Features features) {
    return load("synthetic-sounds", {},
                {.train_size = 8, .test_size = 8, .sounds = SoundOptions{.features = features}});
  };
  EXPECT_EQ(with(Features::kRaw).train.example_shape(), (Shape{16000, 1}));
  EXPECT_EQ(with(Features::kLogMel).train.example_shape(), (Shape{49, 40}));
}

TEST(SyntheticSounds, AreTheSameFromTheSameSeedWhateverTheThreads) {
  const int threads = thread_count();
  for (const char* name : {"synthetic-sounds", "synthetic-hums"}) {
    const auto drawn = [&](int count, std::uint64_t seed) {
      set_thread_count(count);
      const Splits splits = load(name, {}, {.seed = seed, .train_size = 12, .test_size = 6});
      set_thread_count(threads);
      EXPECT_NE(numbers_in(splits.train), numbers_in(splits.test));
      return numbers_in(splits.test);
    };
    EXPECT_EQ(drawn(1, 7), drawn(3, 7)) << name;
    EXPECT_NE(drawn(1, 7), drawn(1, 8)) << name;
  }
}

TEST(SyntheticSounds, MoreNoiseMakesThemHarder) {
  const auto share = [](double snr_db) {
    return share_by_means(synthetic_sounds({.train_size = 400, .test_size = 200, .snr_db = snr_db}));
  };
  // Guessing has 0.125.
  const double clear = share(20), drowned = share(-40);
  EXPECT_GT(clear, 0.5);
  EXPECT_LT(drowned, 0.3) << "how loud a sound is tells a little";
}

TEST(SyntheticSounds, HumsOfTheTrainingPartAreNormalAndFaultsAreFartherFromThem) {
  const Splits splits = load("synthetic-hums", {}, {.train_size = 40, .test_size = 60});
  // 61 steps make 57 windows of 5.
  EXPECT_EQ(splits.train.images.shape(), (Shape{40 * 57, 5, 128}));
  EXPECT_EQ(splits.test.images.shape(), (Shape{60 * 57, 5, 128}));
  EXPECT_EQ(splits.train.class_names, (std::vector<std::string>{"normal", "bearing", "shaft", "whine"}));
  EXPECT_EQ(means_of(splits.train).size(), 1u);
  std::map<std::int32_t, int> windows;
  std::array<double, 4> distances{};
  const std::vector<double> normal = means_of(splits.train).at(0);
  for (std::int64_t i = 0; i < splits.test.size(); ++i) {
    const std::int32_t label = splits.test.labels.values<std::int32_t>()[i];
    ++windows[label];
    distances.at(label) += distance(splits.test.images.values<float>().subspan(i * 640, 640), normal);
  }
  EXPECT_EQ(windows, (std::map<std::int32_t, int>{{0, 30 * 57}, {1, 10 * 57}, {2, 10 * 57}, {3, 10 * 57}}));
  for (const int fault : {1, 2, 3})
    EXPECT_GT(distances.at(fault) / windows[fault], 1.02 * distances[0] / windows[0]) << fault;
  EXPECT_EQ(splits.test.recordings.values<std::int32_t>()[2 * 57 + 1], 0) << "recording 1 begins";
  EXPECT_EQ(splits.test.recordings.values<std::int32_t>()[2 * 57], 1);
  EXPECT_EQ(
      std::set<int>(splits.test.groups.values<std::int32_t>().begin(), splits.test.groups.values<std::int32_t>().end())
          .size(),
      60u)
      << "the windows of a recording stay together";
}

TEST(SyntheticSounds, SizesBeyondTheLimitsAreNamed) {
  for (const std::int64_t size : {0, 100001})
    EXPECT_TRUE(testing::mentions(
        testing::error_of([&] { synthetic_sounds({.train_size = size}); }),
        {"synthetic-sounds: the training part must have 1 to 100000 recordings", std::to_string(size)}));
}

}  // namespace
}  // namespace miniqat::datasets::synthetic_sounds_test
