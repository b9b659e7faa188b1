// A command that works on a run, given nothing: the command line for the newest run, as a shell takes it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::newest_run_test {
namespace {

class NewestRunTest : public TinyTaskTest {
 protected:
  /// The line behind the error; "" without one.
  std::string advice(const std::string& command) const {
    const Outcome outcome = program({command});
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const std::size_t end = outcome.err.find('\n');
    EXPECT_TRUE(outcome.err.starts_with("miniqat " + command + ": ")) << outcome.err;
    return outcome.err.substr(end + 1);
  }
  /// What a shell makes of the line.
  int pasted(const std::string& command) const {
    const std::string line = advice(command), start = "for the newest run: miniqat ";
    EXPECT_TRUE(line.starts_with(start)) << line;
    place_.write("pasted", "cd '" + place_.path().string() + "' && '" + program_path() + "' " +
                               line.substr(std::min(start.size(), line.size())));
    return std::system(("sh " + path("pasted").string() + " > /dev/null").c_str());
  }
};

TEST_F(NewestRunTest, IsWhatACommandWithoutArgumentsNames) {
  expect_success(train("runs/older"));
  expect_success(train("runs/new", "--per-channel"));
  EXPECT_EQ(advice("eval"), "for the newest run: miniqat eval runs/new\n");
  EXPECT_EQ(advice("report"), "for the newest run: miniqat report runs/new --out runs/new.html\n");
  EXPECT_EQ(advice("export"), "for the newest run: miniqat export runs/new --out runs/new.onnx\n");
  EXPECT_EQ(advice("verify"), "for the newest run: miniqat verify runs/new\n");
  EXPECT_EQ(advice("quantize"), "") << "no float run";
  for (const char* command : {"eval", "report", "export", "predict", "inspect"}) EXPECT_EQ(pasted(command), 0);
  // With arguments somebody knows what to write.
}

TEST_F(NewestRunTest, FitsTheCommand) {
  expect_success(train("runs/bits"));
  expect_success(train("runs/float", "--float"));
  EXPECT_EQ(advice("eval"), "for the newest run: miniqat eval runs/float\n");
  EXPECT_EQ(advice("export"),
            "for the newest run: miniqat export runs/float --format onnx-float --out runs/float.onnx\n");
  EXPECT_EQ(advice("verify"), "for the newest run: miniqat verify runs/bits\n");
  for (const char* command : {"export", "calibrate"}) EXPECT_EQ(pasted(command), 0);
  EXPECT_EQ(advice("quantize"), "for the newest run: miniqat quantize runs/float --out runs/float-quantized\n");
  EXPECT_EQ(advice("sensitivity"), "for the newest run: miniqat sensitivity runs/float --out runs/float-sensitivity\n");
}

TEST_F(NewestRunTest, IsQuotedForAShell) {
  expect_success(train("runs/my $(touch ran) 'run'", "--float"));
  for (const char* command : {"eval", "export", "report"}) EXPECT_EQ(pasted(command), 0) << advice(command);
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
}

TEST_F(NewestRunTest, WithoutOneTheErrorIsAlone) {
  EXPECT_EQ(advice("eval"), "");
  // Runs that have nothing to work on yet, or are none.
  place_.write("runs/begun/config.json", R"({"model": "lenet", "dataset": "mnist"})");
  place_.write("runs/broken/config.json", R"({"model": "lenet", "dataset": "mnist", "new_setting": 3})");
  EXPECT_EQ(advice("eval"), "");
}

}  // namespace
}  // namespace miniqat::testing::newest_run_test
