// Arrays and tables beside those that are read.

#include <gtest/gtest.h>

#include <filesystem>

#include "datasets/dataset.h"
#include "datasets/known_datasets.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::left_out_test {
namespace {

namespace fs = std::filesystem;
using testing::mentions;

Splits digits() { return load("synthetic", {}, {.train_size = 40, .test_size = 10}); }

std::string notes(const fs::path& folder) {
  std::string text;
  for (const std::string& note : load(folder.string()).remarks().notes) text += note + "|";
  return text;
}

TEST(LeftOutTest, ArraysThatAreNotReadAreNamed) {
  const testing::TempDir place;
  const fs::path folder = place.path() / "npy";
  testing::write_npy_folder(folder, digits());
  EXPECT_EQ(notes(folder), "");
  fs::copy_file(folder / "y_test.npy", folder / "weights.npy");
  fs::copy_file(folder / "y_test.npy", folder / "y_extra.npy");
  EXPECT_TRUE(mentions(notes(folder), {"note: ", "/npy: left out 2 arrays: weights, y_extra|"}));
}

TEST(LeftOutTest, TablesThatAreNotReadAreNamed) {
  const testing::TempDir place;
  const fs::path folder = place.path() / "csv";
  testing::write_csv_folder(folder, digits());
  EXPECT_EQ(notes(folder), "");
  fs::copy_file(folder / "train.csv", folder / "train2.csv");
  EXPECT_TRUE(mentions(notes(folder), {"/csv: left out 1 table: train2.csv|"}));
}

}  // namespace
}  // namespace miniqat::datasets::left_out_test
