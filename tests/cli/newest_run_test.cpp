// A command that works on a run, given nothing: the command line for the newest run, as a shell takes it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/text/error.h"
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
  EXPECT_NE(advice("quantize").find("this makes one: miniqat train --float "), std::string::npos) << "no float run";
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

TEST_F(NewestRunTest, WithoutOneItIsTheCommandThatMakesOne) {
  const auto making = [](const std::string& flags, const std::string& folder = "runs/first") {
    return concat("no run below runs/ is for this yet; this makes one: miniqat train", flags, " --epochs 1 --out ",
                  folder, "\n");
  };
  for (const char* command : {"eval", "predict", "inspect", "runs", "verify", "report", "export"})
    EXPECT_EQ(advice(command), making(""));
  for (const char* command : {"calibrate", "quantize", "sensitivity"}) EXPECT_EQ(advice(command), making(" --float"));
  EXPECT_EQ(advice("reestimate"), making(" --model lenet_bn"));
  // They are commands: of all that is wrong with these, the threads.
  for (const char* flags : {"", "--float", "--model lenet_bn"})
    expect_error(program("train --epochs 1 --out runs/first --threads 1025" + Arguments(flags)), 2, {"--threads must"});
  expect_success(train("runs/first"));
  EXPECT_EQ(advice("eval"), "for the newest run: miniqat eval runs/first\n");
  EXPECT_EQ(advice("quantize"), making(" --float", "runs/first-2")) << "runs/first is there";
  // Runs that have nothing to work on yet, or are none.
  std::filesystem::remove_all(path("runs/first"));
  place_.write("runs/begun/config.json", R"({"model": "lenet", "dataset": "mnist"})");
  place_.write("runs/broken/config.json", R"({"model": "lenet", "dataset": "mnist", "new_setting": 3})");
  EXPECT_EQ(advice("eval"), making(""));
}

TEST_F(NewestRunTest, ReestimatesOneWithBatchNorms) {
  expect_success(train("runs/norm", {"--model", "norm.json"}));
  expect_success(train("runs/tiny"));
  EXPECT_EQ(advice("reestimate"), "for the newest run: miniqat reestimate runs/norm --out runs/norm-reestimated\n");
  EXPECT_EQ(pasted("reestimate"), 0);
}

TEST_F(NewestRunTest, AModelInARunsPlaceGetsTheCommandThatTrainsIt) {
  for (const Arguments& line : std::vector<Arguments>{{"eval", "lenet5"},
                                                      {"eval", "--run", "lenet5"},
                                                      {"export", "lenet5", "--out", "lenet5.onnx"},
                                                      {"report", "lenet5", "--out", "lenet5.html"},
                                                      {"quantize", "lenet5", "--out", "quantized"},
                                                      {"predict", "lenet5", "0"}})
    expect_error(program(line), 1,
                 {"lenet5 holds no run", "lenet5 is a model", "miniqat train --model lenet5 --out runs/lenet5"});
  expect_error(program({"eval", "tiny.json"}), 1, {"tiny.json is a file", "--model (train)"});
  EXPECT_EQ(program({"eval", "nowhere"}).err.find("is a model"), std::string::npos);
}

}  // namespace
}  // namespace miniqat::testing::newest_run_test
