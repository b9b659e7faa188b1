// main() of the test programs. Each holds the tests of a folder; --file runs those of one file:
//   build/release/tests/test_layers --file=layers/conv2d_test.cpp
// Of each suite's tests with a parameter, MINIQAT_FEWER_CASES=n runs one in n, and the first; of those without one,
// MINIQAT_FEWER_TESTS=n does.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fewer_cases.h"

namespace {

bool is_in(const testing::TestInfo& test, const std::string& file) {
  return std::string_view(test.file()).ends_with("tests/" + file);
}

/// Adds to what --gtest_filter leaves out.
void leave_out(const std::string& names) {
  const std::string filter = GTEST_FLAG_GET(filter);
  const bool leaves_out = filter.find('-') != std::string::npos;
  GTEST_FLAG_SET(filter, filter + (leaves_out ? ":" : "-") + names);
}

/// Leaves the tests of other files out. Returns how many there are in `file`.
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
  if (GTEST_FLAG_GET(filter) == "*")
    GTEST_FLAG_SET(filter, own);
  else
    leave_out(others);
  return total;
}

void keep_fewer() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string names;
  const int step = miniqat::testing::fewer_tests();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    miniqat::testing::OneIn chosen(1);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      const bool stays = test.value_param() ? chosen() : k % step == 0;
      if (!stays && k > 0) names += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  if (!names.empty()) leave_out(names);
}

}  // namespace

int main(int argc, char** argv) {
  // Where no cache can be written: only tests that set it keep anything.
  setenv("MINIQAT_CACHE_DIR", "/dev/null/none", 1);
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) {
    keep_fewer();
    return RUN_ALL_TESTS();
  }
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
  keep_fewer();
  return RUN_ALL_TESTS();
}
