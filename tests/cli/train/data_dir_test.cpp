// The folder of the data, as a run keeps it.

#include <gtest/gtest.h>

#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::data_dir_test {
namespace {

class DataDirTest : public TinyTaskTest {
 protected:
  /// The program with MINIQAT_DATA_DIR, in the tests' directory.
  Outcome with_variable(const std::string& value, const Arguments& line) const {
    return Program(Program::Line{(Arguments{"/usr/bin/env", "MINIQAT_DATA_DIR=" + value, program_path()} + line)},
                   place_.path())
        .wait();
  }
  Arguments training(const std::string& out) const {
    return {"train", "--model", "tiny.json", "--dataset", "mnist", "--steps", "12", "--threads", "1", "--out", out};
  }
};

/// It was "": in the next shell `eval RUN` failed, and exports had random test vectors.
TEST_F(DataDirTest, TheOneOfTheVariableIsKept) {
  expect_success(with_variable(path("digits").string(), training("run")));
  EXPECT_EQ(json_of(path("run/config.json"))["data_dir"], path("digits").string());
  expect_success(program("eval run"));
  // From a run to the next one, too.
  Arguments line = training("float");
  line.emplace_back("--float");
  expect_success(with_variable(path("digits").string(), line));
  expect_success(program("calibrate float --out calibrated"));
  EXPECT_EQ(json_of(path("calibrated/config.json"))["data_dir"], path("digits").string());
}

TEST_F(DataDirTest, ARelativeOneMeansTheSameFromAnyFolder) {
  Arguments line = training("run");
  line.insert(line.end(), {"--data-dir", "digits"});
  expect_success(program(line));
  EXPECT_EQ(json_of(path("run/config.json"))["data_dir"], path("digits").string());
  expect_success(miniqat({"eval", path("run").string()}, "/"));
}

TEST_F(DataDirTest, OneThatIsGoneGivesWayToTheVariable) {
  expect_success(with_variable(path("digits").string(), training("run")));
  std::filesystem::rename(path("digits"), path("moved"));
  expect_error(program("eval run"), 1, {path("digits").string(), "--data-dir"});
  expect_success(with_variable(path("moved").string(), {"eval", "run"}));
}

}  // namespace
}  // namespace miniqat::testing::data_dir_test
