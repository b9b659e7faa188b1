#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>

#include "core/tensors/shape.h"
#include "core/text/error.h"

namespace miniqat::concat_test {

using namespace std::string_literals;

TEST(Concat, WritesTextsAsTheyAre) {
  const std::string text = "a\0b"s;
  const char letters[] = {'l', 'i', 't', '\0', 'x'};
  char writable[] = "w";
  EXPECT_EQ(concat(text, std::string_view("view").substr(1, 2), "", 'c', letters, writable), "a\0bieclitw"s);
  EXPECT_EQ(concat(), "");
}

TEST(Concat, WritesNumbersAsAStreamDoes) {
  EXPECT_EQ(concat(-3, " ", std::size_t{18446744073709551615u}, " ", std::numeric_limits<std::int64_t>::min()),
            "-3 18446744073709551615 -9223372036854775808");
  EXPECT_EQ(concat(0.1f, " ", 1e-7, " ", 1234567.0, " ", 2.0, " ", std::numeric_limits<double>::infinity(), " ", true),
            "0.1 1e-07 1.23457e+06 2 inf 1");
}

TEST(Concat, WritesWhatHasAnOperator) {
  EXPECT_EQ(concat(Shape{2, 3}, " in ", std::filesystem::path("a \"b\"")), R"([2,3] in "a \"b\"")");
}

TEST(Concat, TemporariesLiveAsLongAsTheCall) {
  EXPECT_EQ(concat(std::string(100, 'x').substr(0, 3), std::to_string(7)), "xxx7");
}

TEST(Fail, ThrowsTheJoinedParts) {
  try {
    fail("node ", 3, ": ", Shape{1});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "node 3: [1]");
  }
}

}  // namespace miniqat::concat_test
