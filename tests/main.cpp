// main() of the test programs. Each holds the tests of a folder; --file runs those of one file:
//   build/release/tests/test_layers --file=layers/conv2d_test.cpp

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// Leaves out the tests of other files, beside what --gtest_filter leaves out. Returns how many remain.
int keep_tests_of(const std::string& file) {
  const auto& all = *testing::UnitTest::GetInstance();
  std::string filter = GTEST_FLAG_GET(filter);
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  int kept = 0;
  for (int i = 0; i < all.total_test_suite_count(); ++i)
    for (int k = 0; k < all.GetTestSuite(i)->total_test_count(); ++k) {
      const testing::TestInfo& test = *all.GetTestSuite(i)->GetTestInfo(k);
      if (std::string_view(test.file()).ends_with("tests/" + file))
        ++kept;
      else
        filter += std::string(test.test_suite_name()) + "." + test.name() + ":";
    }
  GTEST_FLAG_SET(filter, filter);
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return RUN_ALL_TESTS();
  const std::string_view argument = argv[1];
  constexpr std::string_view kFile = "--file=";
  if (argc > 2 || !argument.starts_with(kFile)) {
    std::fprintf(stderr, "usage: %s [--file=FOLDER/NAME_test.cpp] [--gtest_...]\n", argv[0]);
    return 2;
  }
  const std::string file(argument.substr(kFile.size()));
  if (keep_tests_of(file) == 0) {
    std::fprintf(stderr, "%s: there is no test in a file %s\n", argv[0], file.c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
