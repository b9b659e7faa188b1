#include "datasets/arrays/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::datasets::csv_test {
namespace {

// (Other tables: tests/datasets/user_files_test.cpp.)
TEST(CsvTest, AMarkOfUtf8IsNoName) {
  const testing::TempDir dir;
  const auto read = [&](const std::string& text) {
    dir.write("table.csv", text);
    return read_csv_pictures(dir.path() / "table.csv", {0, 0});
  };
  const std::string mark = "\xef\xbb\xbf", rows = "1,2,3,4,5\n0,6,7,8,9\n";
  const CsvPictures plain = read(rows);
  ASSERT_EQ(plain.labels.shape(), (Shape{2}));
  // With a name of a column at the end, too: the mark belongs to no name.
  for (const std::string& text :
       {mark + rows, mark + "\"Label\",a,b,c,d\n" + rows, mark + "a,b,c,d,label\n2,3,4,5,1\n6,7,8,9,0\n"}) {
    const CsvPictures marked = read(text);
    EXPECT_TRUE(std::ranges::equal(marked.labels.values<std::int32_t>(), plain.labels.values<std::int32_t>())) << text;
    EXPECT_TRUE(std::ranges::equal(marked.images.values<std::uint8_t>(), plain.images.values<std::uint8_t>())) << text;
  }
}

std::string error_of_gzip(const std::string& bytes) {
  const testing::TempDir dir;
  const auto path = dir.write("table.csv.gz", bytes);
  return testing::error_of([&] { read_csv_pictures(path, {0, 0}); });
}

// Of three megabytes that expand to gigabytes, too: nothing is expanded behind the line that is refused. The data are
// cut off, so that expanding them would be refused for that.
TEST(CsvTest, WhatACompressedTableHoldsIsReadLineByLine) {
  const std::string line = "1,2,3,4,5\n", zeros(std::size_t{1} << 24, '\0');
  const auto cut = [](const std::string& text) {
    const std::string bytes = testing::gzip_bytes(text, 9);
    return bytes.substr(0, bytes.size() - 9);
  };
  EXPECT_TRUE(testing::mentions(error_of_gzip(cut(line + "6,seven\n" + zeros)), {"line 2", "\"seven\""}));
  EXPECT_TRUE(testing::mentions(error_of_gzip(cut(line + line)), {"is cut short"}));
}

TEST(CsvTest, ALineWithoutEndIsRefused) {
  const std::string zeros((std::size_t{1} << 26) + (std::size_t{3} << 20), '0');
  EXPECT_TRUE(testing::mentions(error_of_gzip(testing::gzip_bytes(zeros, 1)), {"a line of more than 67108864 bytes"}));
}

TEST(CsvTest, ACompressedTableOfManyBlocksIsReadWhole) {
  const testing::TempDir dir;
  std::string text;
  constexpr int kRows = 30'000;
  for (int i = 0; i < kRows; ++i) {
    text += std::to_string(i % 7);
    for (int pixel = 0; pixel < 16; ++pixel) text += "," + std::to_string((i + pixel) % 256);
    text += i + 1 < kRows ? "\n" : "";
  }
  ASSERT_GT(text.size(), std::size_t{3} << 19);
  const CsvPictures plain = read_csv_pictures(dir.write("a.csv", text), {0, 0});
  const CsvPictures read = read_csv_pictures(dir.write("a.csv.gz", testing::gzip_bytes(text, 6)), {0, 0});
  ASSERT_EQ(read.labels.shape(), (Shape{kRows}));
  EXPECT_TRUE(std::ranges::equal(read.labels.values<std::int32_t>(), plain.labels.values<std::int32_t>()));
  EXPECT_TRUE(std::ranges::equal(read.images.values<std::uint8_t>(), plain.images.values<std::uint8_t>()));
}

TEST(CsvTest, TheSizeThatIsGivenComesBeforeASquare) {
  const testing::TempDir dir;
  std::string row = "1";
  for (int pixel = 0; pixel < 144; ++pixel) row += concat(",", pixel);
  const auto path = dir.write("table.csv", row + "\n");
  EXPECT_EQ(read_csv_pictures(path, {12, 4}).images.shape(), (Shape{1, 12, 4, 3}));
  EXPECT_EQ(read_csv_pictures(path, {0, 0}).images.shape(), (Shape{1, 12, 12, 1}));
}

TEST(CsvTest, SemicolonsAreNamed) {
  const testing::TempDir dir;
  dir.write("table.csv", "1,2,3,4,5\n0;6;7;8;9\n");
  EXPECT_TRUE(testing::mentions(testing::error_of([&] {
                                  read_csv_pictures(dir.path() / "table.csv", {0, 0});
                                }),
                                {"line 2", "\"0;6;7;8;9\" is not a number", "not semicolons"}));
}

}  // namespace
}  // namespace miniqat::datasets::csv_test
