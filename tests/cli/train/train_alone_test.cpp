// `miniqat train` without settings: what it is about to do, before it does it.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_alone_test {
namespace {

namespace fs = std::filesystem;

class TrainAloneTest : public TinyTaskTest {
 protected:
  /// What is printed before the line on the network, which has its own numbers.
  std::string plan(const Arguments& more = {}) const {
    Program program("train" + more, place_.path());
    program.wait_for_output("multiply-adds");
    program.send(SIGINT);
    const Outcome outcome = program.wait();
    return outcome.out.substr(0, outcome.out.find("\n\nlenet on "));
  }
};

TEST_F(TrainAloneTest, SaysWhatItIsAboutToDoAndAShorterCommand) {
  const std::string text = plan();
  EXPECT_EQ(text,
            "No settings are given: this trains lenet on synthetic (digits that miniqat\n"
            "draws), with 8-bit weights and 8-bit activations, for 10 epochs, into\n"
            "runs/lenet-synthetic-w8a8-seed1.\n"
            "How long it takes is told beside its first steps; after Ctrl-C, train --resume\n"
            "goes on.\n"
            "A shorter first command: miniqat train --epochs 1 --out runs/first");
  // The command that it names is one.
  Program first({"train", "--epochs", "1", "--out", "runs/first"}, place_.path());
  first.wait_for_output("step ");
  first.send(SIGINT);
  EXPECT_TRUE(first.wait().out.starts_with("lenet on synthetic")) << "settings are given: no more words";
  // It is no longer the first.
  const std::string again = plan({"--overwrite"});
  EXPECT_TRUE(again.starts_with("No settings are given")) << again;
  EXPECT_EQ(again.find("shorter"), std::string::npos) << again;
}

TEST_F(TrainAloneTest, SaysHowLongARunOfTheSameEpochsTook) {
  plan({"--out", "runs/first"});
  // As a whole run of one epoch leaves it.
  auto config = nlohmann::ordered_json::parse(bytes_of(path("runs/first/config.json")));
  config["epochs"] = 2;
  const auto finish = [&] {
    place_.write("runs/first/config.json", config.dump());
    place_.write("runs/first/summary.json",
                 R"({"complete": true, "steps": 188, "seconds": 84.0, "test_accuracy": 0.9, "quantization": "W8A8"})");
  };
  finish();
  EXPECT_NE(plan().find("\nIt takes about 7 minutes, as runs/first tells; "), std::string::npos)
      << plan({"--overwrite"});
  config["batch_size"] = 64;
  finish();
  const std::string other = plan({"--overwrite"});
  expect_text(other, {"\nHow long it takes is told beside its first steps; "});
}

TEST_F(TrainAloneTest, RunsWithSettingsBeginAsBefore) {
  for (const Outcome& outcome : {train("run"), resume("run", "--steps 14")}) {
    expect_success(outcome);
    EXPECT_EQ(outcome.out.find("No settings are given"), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace miniqat::testing::train_alone_test
