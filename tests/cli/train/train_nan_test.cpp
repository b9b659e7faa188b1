// A run that meets a NaN, and what is said of it then.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::train_nan_test {
namespace {

class TrainNanTest : public TinyTaskTest {
 protected:
  void expect_text(const std::string& text, const std::string& part) const {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in " << text;
  }
};

TEST_F(TrainNanTest, SaysHowToGoOnAndTheRunCanBeOverwritten) {
  const Arguments wild = {"--learning-rate", "1e30", "--schedule", "constant"};
  expect_error(train("run", wild), 1,
               {"step 2", "the checkpoint of step 0 stays in run", "--overwrite", "lower --learning-rate"});
  expect_error(train("run"), 1, {"run holds a run already", "--overwrite"});
  expect_success(train("run", {"--overwrite"}));
  expect_success(train("whole"));
  EXPECT_TRUE(files_of(path("run")) == files_of(path("whole")));
  expect_error(train("run", {"--overwrite", "--resume"}), 2, {"--overwrite", "--resume"});
}

TEST_F(TrainNanTest, NamesADampeningThatIsOn) {
  const Arguments flags = {"--dampening", "1e30", "--schedule", "constant"};
  expect_error(train("damp", flags), 1,
               {"begin anew with --overwrite and, say, a lower --learning-rate or --dampening"});
  expect_text(program({"eval", "--run", "damp", "--threads", "1"}).err, "a lower --learning-rate or --dampening)");
  const Outcome without = train("wild", {"--learning-rate", "1e30", "--schedule", "constant"});
  EXPECT_EQ(without.err.find("--dampening"), std::string::npos) << without.err;
}

// What the advice is, the last attempt to go on decides.
TEST_F(TrainNanTest, IsRememberedUntilTheRunGoesOn) {
  expect_success(train("run", {"--stop-at", "8"}));
  const auto note = [&] { return program({"eval", "--run", "run", "--threads", "1"}).err; };
  expect_text(note(), "step 8 (miniqat train --resume goes on)");
  std::ofstream(path("run/metrics.jsonl"), std::ios::app)
      << R"({"step": 11, "failure": "the loss became NaN"})" << '\n';
  expect_text(note(), "step 8 (the loss became NaN; --resume would come to the same: begin anew with --overwrite");
  expect_success(resume("run", {"--stop-at", "10"}));
  expect_text(note(), "step 10 (miniqat train --resume goes on)");
  expect_success(resume("run"));
  EXPECT_EQ(note(), "");
  EXPECT_EQ(bytes_of(path("run/metrics.jsonl")).find("failure"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::testing::train_nan_test
