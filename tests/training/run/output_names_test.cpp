#include "training/run/output_names.h"

#include <gtest/gtest.h>

#include "tests/errors.h"

namespace miniqat::training::output_names_test {
namespace {

TEST(OutputNames, TheSameNamesLieInTheSameOrder) {
  const auto error = [](const Task& task, const std::vector<std::string>& targets) {
    const datasets::Dataset data{.name = "other", .class_names = targets, .target_names = targets};
    return testing::error_of([&] { require_order_of({"a", "b"}, task, data, "net"); });
  };
  for (const Task* task : {&regression(), &multilabel()}) {
    EXPECT_EQ(error(*task, {"a", "b"}), "");
    EXPECT_EQ(error(*task, {"b", "a"}), "net: its outputs are a, b, in this order, and the targets of other are b, a");
    for (const std::vector<std::string>& others : {std::vector<std::string>{"c", "a"}, {"b"}, {}})
      EXPECT_EQ(error(*task, others), "") << "they may be called otherwise";
  }
  EXPECT_EQ(error(classification(), {"b", "a"}), "") << "classes are linked by their names";
  EXPECT_EQ(error(reconstruction(), {"b", "a"}), "");
}

}  // namespace
}  // namespace miniqat::training::output_names_test
