// main() of the test programs. Each holds the tests of a folder; --file runs those of one file:
//   build/release/tests/test_layers --file=layers/conv2d_test.cpp

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

bool is_in(const testing::TestInfo& test, const std::string& file) {
  return std::string_view(test.file()).ends_with("tests/" + file);
}

/// Leaves the tests of other files out, and what --gtest_filter leaves out. Returns how many there are in `file`.
int keep_tests_of(const std::string& file) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string own, others;
  int total = 0;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    const std::string name = suite.name();
    int count = 0;
    for (int k = 0; k < suite.total_test_count(); ++k) count += is_in(*suite.GetTestInfo(k), file);
    total += count;
    if (count == 0 || count == suite.total_test_count()) {
      (count == 0 ? others : own) += name + ".*:";
      continue;
    }
    // A suite of two files.
    for (int k = 0; k < suite.total_test_count(); ++k)
      (is_in(*suite.GetTestInfo(k), file) ? own : others) += name + "." + suite.GetTestInfo(k)->name() + ":";
  }
  const std::string filter = GTEST_FLAG_GET(filter);
  const bool leaves_out = filter.find('-') != std::string::npos;
  GTEST_FLAG_SET(filter, filter == "*" ? own : filter + (leaves_out ? ":" : "-") + others);
  return total;
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
