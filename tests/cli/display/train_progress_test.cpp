#include <gtest/gtest.h>

#include "cli/display/run_display.h"
#include "tests/cli/program.h"

namespace miniqat::cli::train_progress_test {
namespace {

using testing::expect_text;

const training::StepReport kReport = {
    .step = 469, .total_steps = 4690, .epoch = 1, .loss = 0.12345, .images_per_second = 12345.4, .seconds_left = 65};

TEST(TrainProgress, AWideTerminalShowsAll) {
  EXPECT_EQ(progress_text(kReport, 200),
            "[##......................] 469/4690  epoch 1.00  loss 0.1235  12345 images/s  1:05 left");
}

TEST(TrainProgress, WithLessRoomTheBarIsShorterAndThenLessIsSaid) {
  EXPECT_EQ(progress_text(kReport, 79),
            "[#...............] 469/4690  epoch 1.00  loss 0.1235  12345 images/s  1:05 left");
  EXPECT_EQ(progress_text(kReport, 59), "[#...........] 469/4690  epoch 1.00  loss 0.1235  1:05 left");
  EXPECT_EQ(progress_text(kReport, 50), "[#..............] 469/4690  loss 0.1235  1:05 left");
  EXPECT_EQ(progress_text(kReport, 40), "469/4690  loss 0.1235  1:05 left");
  EXPECT_EQ(progress_text(kReport, 20), "469/4690  1:05 left");
}

TEST(TrainProgress, FitsFromTheWidthOfStepsAndTimeOn) {
  training::StepReport large = kReport;
  large.step = large.total_steps = 123'456'789;
  large.epoch = 12345.678;
  large.loss = 1e9;
  large.seconds_left = 1e6;
  for (std::size_t columns = 40; columns < 200; ++columns)
    for (const training::StepReport& report : {kReport, large}) {
      const std::string text = progress_text(report, columns);
      EXPECT_LE(text.size(), columns) << text;
      expect_text(text, {" left"});
    }
}

}  // namespace
}  // namespace miniqat::cli::train_progress_test
