#include "datasets/arrays/csv.h"

#include <gtest/gtest.h>

#include <algorithm>

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
