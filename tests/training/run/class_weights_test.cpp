#include <gtest/gtest.h>

#include <vector>

#include "tests/errors.h"
#include "tests/temp_dir.h"
#include "training/run/data_of_run.h"
#include "training/settings/usage_error.h"

namespace miniqat::training::class_weights_test {
namespace {

datasets::Dataset pets(const std::vector<std::int32_t>& labels) {
  return {.name = "pets",
          .images = Tensor({static_cast<std::int64_t>(labels.size()), 1, 1, 1}, DType::kUInt8),
          .labels = Tensor::from<std::int32_t>({static_cast<std::int64_t>(labels.size())}, labels),
          .classes = 3,
          .class_names = {"cat", "dog", "owl"}};
}

TrainSettings with(const std::string& weights) {
  TrainSettings settings;
  settings.class_weights = weights;
  return settings;
}

TEST(ClassWeights, BalancedOnesMakeTheClassesCountAlike) {
  EXPECT_EQ(class_weights_of(with("balanced"), pets({0, 0, 0, 0, 0, 0, 1, 2, 2})), (std::vector{0.5, 3.0, 1.5}));
  EXPECT_EQ(class_weights_of(with("balanced"), pets({0, 0, 0, 2})), (std::vector{4.0 / 6, 0.0, 2.0}))
      << "an empty class takes nothing from the others";
  EXPECT_TRUE(class_weights_of(with(""), pets({0})).empty());
}

TEST(ClassWeights, AFileNamesEachClass) {
  const testing::TempDir place;
  const auto from = [&](const std::string& json) {
    return class_weights_of(with(place.write("w.json", json).string()), pets({0, 1, 2}));
  };
  EXPECT_EQ(from(R"({"owl": 2, "cat": 0.5, "dog": 0})"), (std::vector{0.5, 0.0, 2.0}));
  EXPECT_EQ(from("[1, 2, 3]"), (std::vector{1.0, 2.0, 3.0}));
  const auto refused = [&](const std::string& json, const std::vector<std::string>& parts) {
    const std::string text = testing::error_of([&] { from(json); });
    EXPECT_TRUE(testing::mentions(text, {"--class-weights", "w.json"})) << text;
    EXPECT_TRUE(testing::mentions(text, parts)) << text;
  };
  refused(R"({"owl": 2, "cat": 0.5})", {"no weight for the class dog"});
  refused(R"({"owl": 2, "cat": 0.5, "dgo": 1})", {"no class is called \"dgo\"", "dog"});
  refused(R"({"owl": -2, "cat": 0.5, "dog": 1})", {"the weight of owl", "-2"});
  refused(R"({"owl": "2", "cat": 0.5, "dog": 1})", {"the weight of owl", "\"2\""});
  refused("[1, 2]", {"2 numbers for 3 classes"});
  refused("[0, 0, 0]", {"all weights are 0"});
  refused("3", {"must be"});
  EXPECT_THROW(class_weights_of(with("/nowhere/w.json"), pets({0, 1, 2})), UsageError);
}

}  // namespace
}  // namespace miniqat::training::class_weights_test
