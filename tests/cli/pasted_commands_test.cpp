// Commands that the program prints are pasted into a shell. With names that a shell would run they do what they say, in
// the run of that name, and nothing else.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::pasted_commands_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "my runs/a$(touch x)'b";

class PastedCommandsTest : public TinyTaskTest {
 protected:
  PastedCommandsTest() { fs::create_directories(path("my runs")); }

  /// Runs the text in a shell whose path leads to the program; it must not have made the file of the names.
  Outcome paste(const std::string& text) const {
    const std::string folder = fs::path(program_path()).parent_path().string();
    const Outcome outcome =
        Program(Program::Line{{"/bin/sh", "-c", concat("PATH='", folder, "':$PATH; ", text)}}, place_.path()).wait();
    EXPECT_FALSE(fs::exists(path("x"))) << "a part of a name was run: " << text;
    return outcome;
  }

  /// What a text has between `begin` and `end`; "" if it lacks them.
  static std::string between(const std::string& text, const std::string& begin, const std::string& end) {
    const std::size_t from = text.find(begin);
    const std::size_t to = from == std::string::npos ? from : text.find(end, from + begin.size());
    return to == std::string::npos ? "" : text.substr(from + begin.size(), to - from - begin.size());
  }
};

TEST_F(PastedCommandsTest, TrainingGoesOn) {
  const std::string command = between(expect_success(train(kName, "--stop-at 5")).out, "go on with: ", "\n");
  EXPECT_EQ(command, concat("miniqat train --resume --out ", shell_quoted(kName)));
  expect_success(paste(command));
  EXPECT_EQ(step_of(path(kName)), 12);
}

TEST_F(PastedCommandsTest, AFailedTrainingGoesOn) {
  fs::create_directories(path(kName) / "summary.json/in the way");
  const Outcome failed = train(kName, "--overwrite");
  EXPECT_EQ(failed.status, 1);
  const std::string command = between(failed.err, " with: ", "\n");
  fs::remove_all(path(kName) / "summary.json");
  expect_success(paste(command));
}

TEST_F(PastedCommandsTest, QuantizeGoesOn) {
  expect_success(train("float", "--float"));
  fs::create_directories(path(kName));
  place_.write(concat(kName, "/quantize.json"), "{}");
  const Outcome begun = program({"eval", kName});
  expect_error(begun, 1, {"a run of quantize that is not complete"});
  const std::string command = between(begun.err, "not complete; ", " goes on with it");
  EXPECT_EQ(command, concat("miniqat quantize --resume --out ", shell_quoted(kName)));
  EXPECT_EQ(paste(command).status, 1) << "{} is no plan";
}

TEST_F(PastedCommandsTest, TheCommandOfASensitivityIsTakenByQuantizeAndCalibrate) {
  fs::copy(path("digits"), path("my $(touch x) digits"));
  expect_success(train(kName, "--float"));
  const Outcome measured =
      program("sensitivity --bits 4,8 --average-bits 6 --batches 2 --threads 1" +
              Arguments{kName, "--data-dir", "my $(touch x) digits", "--out", "widths of a$(touch x)'b"});
  expect_success(measured);
  const std::string quantize = between(measured.out, "to use them: ", " --out RUN\n"),
                    calibrate = between(measured.out, "to use them without training: ", " --out PTQ\n");
  EXPECT_TRUE(quantize.starts_with("miniqat quantize ")) << measured.out;
  expect_success(paste(concat(quantize, " --steps 2 --batches 2 --threads 1 --out q")));
  expect_success(paste(concat(calibrate, " --batches 2 --threads 1 --out c")));
  EXPECT_EQ(json_of(path("c/bits.json")), json_of(path("widths of a$(touch x)'b/bits.json")));
}

TEST_F(PastedCommandsTest, RunsAndReportTellCommandsThatAreQuoted) {
  expect_success(train(kName, "--float"));
  expect_success(program({"calibrate", kName, "--batches", "2", "--threads", "1", "--out", "my runs/$(touch x)"}));
  const Outcome list = expect_success(program({"runs", "my runs", "--commands"}));
  const std::string command = concat("calibrate ", shell_quoted(kName), " --batches 2");
  expect_text(list.out, {command});
  expect_success(paste(concat("miniqat ", command, " --threads 1 --out again")));
  EXPECT_EQ(checkpoint_bytes("again"), checkpoint_bytes("my runs/$(touch x)"));
  expect_success(program({"report", "my runs/$(touch x)", "--pictures", "0", "--threads", "1", "--out", "page.html"}));
  const std::string verify = report_data(path("page.html"))["runs"][0]["verify_command"];
  EXPECT_EQ(verify, concat("miniqat verify ", shell_quoted("my runs/$(touch x)")));
  expect_success(paste(concat(verify, " --no-runtimes --examples 4")));
}

TEST_F(PastedCommandsTest, ANameThatBeginsWithADashIsNoFlag) {
  const Outcome stopped = train("-x", {"--float", "--stop-at", "5"});
  expect_success(stopped);
  const std::string go_on = between(stopped.out, "go on with: ", "\n");
  EXPECT_EQ(go_on, "miniqat train --resume --out ./-x");
  expect_success(paste(go_on));
  expect_success(program({"calibrate", "./-x", "--batches", "2", "--threads", "1", "--out", "-y"}));
  expect_success(program({"calibrate", "--run=-x", "--batches", "2", "--threads", "1", "--out=-z"}));
  expect_success(program({"report", "./-z", "--pictures", "0", "--threads", "1", "--out", "page.html"}));
  const auto run = report_data(path("page.html"))["runs"][0];
  const std::string verify = run["verify_command"], again = run["command"], before = checkpoint_bytes("-z");
  expect_success(paste(verify + " --no-runtimes --examples 4"));
  // As it was typed.
  EXPECT_EQ(again, "miniqat calibrate --run=-x --batches 2 --threads 1 --out=-z");
  std::filesystem::remove_all(path("-z"));
  expect_success(paste(again));
  EXPECT_EQ(checkpoint_bytes("-z"), before);
}

/// A stop of `quantize`, whose stages tell the whole command.
TEST_F(PastedCommandsTest, AStoppedQuantizeGoesOn) {
  expect_success(train("float", "--float"));
  Program quantize({"quantize", "float", "--batches", "2", "--steps", "2000000", "--threads", "1", "--out", kName},
                   place_.path());
  quantize.wait_for_output("epoch");
  quantize.send(SIGINT);
  const Outcome stopped = quantize.wait();
  const std::string command = between(stopped.out, "go on with: ", "\n");
  EXPECT_EQ(command, concat("miniqat quantize --resume --out ", shell_quoted(kName))) << stopped.out << stopped.err;
}

}  // namespace
}  // namespace miniqat::testing::pasted_commands_test
