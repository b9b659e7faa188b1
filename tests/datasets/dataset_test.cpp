#include "datasets/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "datasets/known_datasets.h"
#include "tests/errors.h"

namespace miniqat::datasets::dataset_test {
namespace {

using testing::error_of;
using testing::mentions;

TEST(Dataset, ExamplesComeInTheOrderAskedFor) {
  const Dataset digits = load("synthetic", {}, {.train_size = 3, .test_size = 5}).test;
  const std::vector<std::int64_t> indices = {4, 0, 4};
  const Dataset chosen = examples_at(digits, indices);
  ASSERT_EQ(chosen.size(), 3);
  const std::int64_t bytes = digits.example_shape().elements();
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int64_t index = indices[static_cast<std::size_t>(i)];
    EXPECT_EQ(chosen.labels.data<std::int32_t>()[i], digits.labels.data<std::int32_t>()[index]);
    EXPECT_TRUE(std::ranges::equal(chosen.images.values<std::uint8_t>().subspan(i * bytes, bytes),
                                   digits.images.values<std::uint8_t>().subspan(index * bytes, bytes)));
  }
  for (const std::int64_t wrong : {-1, 5})
    EXPECT_TRUE(mentions(error_of([&] {
                           examples_at(digits, std::vector<std::int64_t>{0, wrong});
                         }),
                         {"synthetic", concat("no picture ", wrong, ", only 0 to 4")}));
  EXPECT_TRUE(mentions(error_of([&] { examples_at(digits, {}); }), {"no examples"}));
}

TEST(Dataset, CheckRefusesTensorsThatDoNotFit) {
  Dataset dataset{
      .name = "odd", .images = Tensor(Shape{3, 2, 2, 1}, DType::kUInt8), .labels = Tensor(Shape{3}, DType::kInt32)};
  EXPECT_NO_THROW(dataset.check());
  EXPECT_EQ(dataset.example_shape(), (Shape{2, 2, 1}));
  dataset.labels = Tensor(Shape{2}, DType::kInt32);
  EXPECT_TRUE(mentions(error_of([&] { dataset.check(); }), {"odd", "3 images", "2 labels"}));
  dataset.labels = Tensor(Shape{3}, DType::kInt64);
  EXPECT_TRUE(mentions(error_of([&] { dataset.check(); }), {"labels"}));
  dataset.images = Tensor(Shape{3, 4}, DType::kUInt8);
  EXPECT_TRUE(mentions(error_of([&] { dataset.check(); }), {"images"}));
  dataset.images = Tensor();
  EXPECT_TRUE(mentions(error_of([&] { dataset.check(); }), {"images"}));
}

}  // namespace
}  // namespace miniqat::datasets::dataset_test
