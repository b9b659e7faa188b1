// `miniqat train` without settings: what it is about to do, before it does it.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "cli/advice.h"
#include "core/text/json.h"
#include "tests/cli/tiny_task.h"
#include "training/settings/settings.h"

namespace miniqat::testing::train_alone_test {
namespace {

namespace fs = std::filesystem;

/// In a working directory of its own.
class TrainAloneTest : public TinyTaskTest {
 protected:
  TrainAloneTest() { fs::current_path(place_.path()); }
  ~TrainAloneTest() override { fs::current_path(before_); }

  const fs::path before_ = fs::current_path();
};

TEST_F(TrainAloneTest, SaysWhatItIsAboutToDoAndAShorterCommand) {
  Program alone("train", place_.path());
  alone.wait_for_output("runs/first\n");
  alone.send(SIGINT);
  const std::string text = alone.wait().out;
  EXPECT_TRUE(
      text.starts_with("No settings are given: this trains lenet on synthetic (digits that miniqat\n"
                       "draws), with 8-bit weights and 8-bit activations, for 10 epochs, into\n"
                       "runs/lenet-synthetic-w8a8-seed1.\n"
                       "How long it takes is told beside its first steps; after Ctrl-C, train --resume\n"
                       "goes on.\n"
                       "A shorter first command: miniqat train --epochs 1 --out runs/first\n\n"))
      << text;
  // The command that it names is one: of all that is wrong with this, the threads.
  expect_error(program("train --epochs 1 --out runs/first --threads 1025"), 2, {"--threads must be in 0..1024"});
  // It is no longer the first.
  fs::create_directories("runs/first");
  EXPECT_EQ(cli::plan_of_defaults({}, "runs/other").find("shorter"), std::string::npos);
}

TEST_F(TrainAloneTest, SaysHowLongARunOfTheSameEpochsTook) {
  // As a whole run of two epochs leaves it.
  const auto finish = [&](std::int64_t batch_size) {
    training::TrainSettings settings;
    settings.epochs = 2;
    settings.batch_size = batch_size;
    place_.write("runs/first/config.json", training::settings_to_json(settings).dump());
    place_.write("runs/first/summary.json",
                 R"({"complete": true, "steps": 188, "seconds": 84.0, "test_accuracy": 0.9, "quantization": "W8A8"})");
  };
  const training::TrainSettings defaults;
  finish(defaults.batch_size);
  expect_text(cli::plan_of_defaults(defaults, "runs/a"), {"\nIt takes about 7 minutes, as runs/first tells; "});
  finish(64);
  expect_text(cli::plan_of_defaults(defaults, "runs/a"), {"\nHow long it takes is told beside its first steps; "});
}

TEST_F(TrainAloneTest, RunsWithSettingsBeginAsBefore) {
  for (const Outcome& outcome : {train("run"), resume("run", "--steps 14")}) {
    expect_success(outcome);
    EXPECT_EQ(outcome.out.find("No settings are given"), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace miniqat::testing::train_alone_test
