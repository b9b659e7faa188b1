#include "training/run/data_of_run.h"

#include <gtest/gtest.h>

namespace miniqat::training::data_of_run_test {
namespace {

constexpr const char* kOwn = "/somewhere/own.npz";

TEST(OtherData, PicturesThatHaveANameTakeOnTheGridOfTheRun) {
  TrainSettings settings;
  settings.dataset = kOwn;
  settings.mean = 0.5;
  settings.deviation = 0.25;
  const TrainedOn network{.settings = settings, .images = {4, 28, 28, 1}};
  const std::optional<CodeGrid> grid = load_options(network, "mnist").grid;
  ASSERT_TRUE(grid);
  EXPECT_FLOAT_EQ(grid->scale, 1 / (255 * 0.25F));
  EXPECT_EQ(grid->zero_point, 128);
  settings.dataset = "mnist";
  EXPECT_FALSE(load_options(network, "mnist").grid) << "the run's own";
  EXPECT_TRUE(load_options(network, "fashion-mnist").grid);
}

TEST(OtherData, DataAreReadAsWhatTheRunWasTrainedOn) {
  using enum datasets::Inputs;
  TrainSettings settings;
  settings.dataset = kOwn;
  TrainedOn network{.settings = settings, .images = {4, 12, 12, 1}};
  const auto numbers_of = [&](const char* dataset) { return load_options(network, dataset).numbers; };
  for (const datasets::Inputs inputs : {kAuto, kNumbers, kPictures}) {
    network.inputs = inputs;
    for (const char* dataset : {"/somewhere/other.npz", kOwn}) {
      EXPECT_EQ(numbers_of(dataset).trained_on, inputs) << "arrays of the run's own look as others do";
      EXPECT_EQ(numbers_of(dataset).inputs, kAuto) << "nobody asked for it";
    }
  }
  settings.inputs = kNumbers;
  EXPECT_EQ(numbers_of("/somewhere/other.npz").inputs, kNumbers) << "what the run was asked for";
}

}  // namespace
}  // namespace miniqat::training::data_of_run_test
