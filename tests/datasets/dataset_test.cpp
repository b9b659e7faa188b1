#include "datasets/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::dataset_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::TempDir;

/// Gives MINIQAT_DATA_DIR a value for one test.
class DataDirVariable : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("MINIQAT_DATA_DIR"); }
  void TearDown() override { unsetenv("MINIQAT_DATA_DIR"); }
  static void set(const std::filesystem::path& path) { setenv("MINIQAT_DATA_DIR", path.c_str(), 1); }
};

/// A CIFAR-10 of one black image a file, all with this label.
void write_cifar10(const TempDir& dir, const std::string& folder, char label) {
  const std::string record = std::string(1, label) + std::string(3072, '\0');
  for (const char* file :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    dir.write(concat(folder, file, ".bin"), record);
}

std::int32_t first_label(const Splits& splits) { return splits.train.labels.data<std::int32_t>()[0]; }

TEST(Dataset, UnknownNameListsTheKnownOnes) {
  EXPECT_EQ(dataset_names().front(), "synthetic");
  std::string error = error_of([] { load("imagenet"); });
  EXPECT_TRUE(mentions(error, {"\"imagenet\""}));
  for (const std::string& name : dataset_names()) EXPECT_TRUE(mentions(error, {name}));
}

TEST_F(DataDirVariable, WithoutAnyDirectoryTheErrorSaysHowToGiveOne) {
  for (const std::string name : {"mnist", "fashion-mnist", "cifar10"})
    EXPECT_TRUE(mentions(
        error_of([&] { load(name); }),
        {name, name == "cifar10" ? "data_batch_1.bin" : "train-images-idx3-ubyte", "--data-dir", "MINIQAT_DATA_DIR"}));
}

TEST_F(DataDirVariable, NamesADirectoryThatIsNone) {
  const TempDir dir;
  const auto file = dir.write("file", "");
  for (const auto& path : {dir.path() / "nowhere", file})
    EXPECT_TRUE(mentions(error_of([&] { load("mnist", path); }), {path.string(), "not a directory"}));
  set(dir.path() / "nowhere");
  EXPECT_TRUE(mentions(error_of([&] { load("mnist"); }), {"nowhere"}));
}

TEST_F(DataDirVariable, IsUsedWhenNoDirectoryIsGiven) {
  const TempDir dir, other;
  set(dir.path());
  write_cifar10(dir, "", 1);
  write_cifar10(other, "", 2);
  EXPECT_EQ(first_label(load("cifar10")), 1);
  EXPECT_EQ(first_label(load("cifar10", other.path())), 2);
}

/// One folder may hold several data sets, however it is given.
TEST_F(DataDirVariable, ASubfolderWithTheDataSetsNameGoesFirst) {
  const TempDir dir;
  write_cifar10(dir, "", 1);
  EXPECT_EQ(first_label(load("cifar10", dir.path())), 1);
  write_cifar10(dir, "cifar10/", 2);
  EXPECT_EQ(first_label(load("cifar10", dir.path())), 2);
  set(dir.path());
  EXPECT_EQ(first_label(load("cifar10")), 2);
}

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
