// --full-range-weights as a user gives it: the integer below the narrow range goes through training, the integer engine
// and the exports.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text/json.h"
#include "integer/format/model_file.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::full_range_test {
namespace {

using Json = nlohmann::json;

class FullRangeTest : public TinyTaskTest {
 protected:
  Outcome export_as(const std::string& run, const std::string& format, const Arguments& more = {}) const {
    return program(Arguments{"export", "--run", run, "--format", format, "--out", run + "." + format} + more);
  }
  /// Weights that are the lowest integer of all.
  std::int64_t lowest_weights(const std::string& run) const {
    std::int64_t count = 0;
    for (const integer::Operation& operation : integer::read_model(path(run + ".miniqat")).operations)
      if (const auto* layer = std::get_if<integer::Layer>(&operation.action))
        count += std::ranges::count(layer->weights, 0);
    return count;
  }
};

TEST_F(FullRangeTest, AllIntegersGoIntoEveryExport) {
  for (const std::string channels : {"--per-channel", "--per-channel=false"}) {
    const std::string& run = channels;
    expect_success(train(run, {"--weight-bits", "2", "--ranges", "auto", "--full-range-weights", channels}));
    const Json verified = Json::parse(program({"verify", "--run", run, "--json", "--no-runtimes"}).out);
    EXPECT_TRUE(verified["reference_equal"]) << verified;
    for (const std::string format : {"miniqat", "tflite", "onnx", "c", "json", "html"})
      expect_success(export_as(run, format));
    EXPECT_GT(lowest_weights(run), 0);
  }
  expect_success(train("narrow", "--weight-bits 2 --ranges auto"));
  expect_success(export_as("narrow", "miniqat"));
  EXPECT_EQ(lowest_weights("narrow"), 0);
}

TEST_F(FullRangeTest, WhatTensorFlowLiteCannotHoldIsToldFromWhatItCan) {
  const Arguments full = "--per-channel --symmetric-weights --full-range-weights";
  expect_success(train("bytes", full));
  expect_error(export_as("bytes", "tflite"), 1,
               {"has a weight of -128", "with --symmetric-weights and without --full-range-weights, or export as"});
  expect_success(export_as("bytes", "onnx"));
}

}  // namespace
}  // namespace miniqat::testing::full_range_test
