#include "datasets/cifar10.h"

#include <gtest/gtest.h>

#include "datasets/known_datasets.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::cifar10_test {
namespace {

using testing::error_of;
using testing::mentions;
using testing::TempDir;

/// A record whose red plane counts up in x, whose green one in y, and whose blue one is the label.
std::string record(int label) {
  std::string bytes(1, static_cast<char>(label));
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) bytes += static_cast<char>(c == 0 ? x : c == 1 ? y : label);
  return bytes;
}

void write_data_set(const TempDir& dir, const std::string& folder = "") {
  for (int i = 1; i <= 5; ++i) dir.write(concat(folder, "data_batch_", i, ".bin"), record(i) + record(i + 1));
  dir.write(folder + "test_batch.bin", record(9));
}

TEST(Cifar10, InterleavesPlanesAndKeepsTheOrderOfTheBatches) {
  for (const std::string folder : {"", "cifar-10-batches-bin/"}) {
    const TempDir dir;
    write_data_set(dir, folder);
    const Splits splits = load("cifar10", dir.path());
    ASSERT_EQ(splits.train.images.shape(), (Shape{10, 32, 32, 3}));
    ASSERT_EQ(splits.test.images.shape(), (Shape{1, 32, 32, 3}));
    EXPECT_EQ(splits.train.scale, 1.0f / 64);
    EXPECT_EQ(splits.train.zero_point, 128);
    for (int n = 0; n < 10; ++n) {
      const int label = 1 + n / 2 + n % 2;
      EXPECT_EQ(splits.train.labels.data<std::int32_t>()[n], label);
      const std::uint8_t* pixel = splits.train.images.data<std::uint8_t>() + ((n * 32 + 20) * 32 + 7) * 3;
      EXPECT_EQ(pixel[0], 7);
      EXPECT_EQ(pixel[1], 20);
      EXPECT_EQ(pixel[2], label);
    }
  }
}

TEST(Cifar10, RefusesMalformedFiles) {
  const TempDir dir;
  write_data_set(dir);
  const auto error = [&] { return error_of([&] { load_cifar10(dir.path()); }); };
  dir.write("data_batch_3.bin", "");
  EXPECT_TRUE(mentions(error(), {"data_batch_3.bin", "is empty"}));
  dir.write("data_batch_3.bin", record(3).substr(1));
  EXPECT_TRUE(mentions(error(), {"data_batch_3.bin", "3072 bytes", "3073"}));
  dir.write("data_batch_3.bin", record(3) + record(10));
  EXPECT_TRUE(mentions(error(), {"data_batch_3.bin", "record 1", "label 10"}));
  std::filesystem::remove(dir.path() / "data_batch_3.bin");
  EXPECT_TRUE(mentions(error(), {"has none of data_batch_3.bin", "--data-dir"}));
  std::filesystem::create_directory(dir.path() / "data_batch_3.bin");
  EXPECT_TRUE(mentions(error(), {"data_batch_3.bin"}));
}

}  // namespace
}  // namespace miniqat::datasets::cifar10_test
