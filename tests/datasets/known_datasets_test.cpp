#include "datasets/known_datasets.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::known_datasets_test {
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

TEST(KnownDatasets, PicturesTakeTheGridOfANetwork) {
  const Splits own = load("synthetic", {}, {.train_size = 20, .test_size = 10});
  const Splits splits = load("synthetic", {}, {.train_size = 20, .test_size = 10, .grid = CodeGrid{0.02F, 100}});
  for (const Dataset* part : {&splits.train, &splits.test}) {
    EXPECT_EQ(part->scale, 0.02F);
    EXPECT_EQ(part->zero_point, 100);
  }
  EXPECT_NE(own.test.scale, 0.02F);
}

/// A CIFAR-10 of one black image a file, all with this label.
void write_cifar10(const TempDir& dir, const std::string& folder, char label) {
  const std::string record = std::string(1, label) + std::string(3072, '\0');
  for (const char* file :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    dir.write(concat(folder, file, ".bin"), record);
}

std::int32_t first_label(const Splits& splits) { return splits.train.labels.data<std::int32_t>()[0]; }

TEST(KnownDatasets, UnknownNameListsTheKnownOnes) {
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

TEST_F(DataDirVariable, NamesTheScriptOfMnistWhereItIs) {
  const TempDir dir;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  const std::string without = error_of([] { load("mnist"); });
  dir.write("scripts/get-data", "");
  const std::string with = error_of([] { load("mnist"); }), other = error_of([] { load("cifar10"); });
  std::filesystem::current_path(before);
  EXPECT_TRUE(mentions(with, {without + "; scripts/get-data mnist DIR downloads it"}));
  for (const std::string& error : {without, other}) EXPECT_FALSE(mentions(error, {"get-data"})) << error;
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

}  // namespace
}  // namespace miniqat::datasets::known_datasets_test
