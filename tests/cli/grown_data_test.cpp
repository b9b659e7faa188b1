// A table that gets more rows after the float run.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/errors.h"

namespace miniqat::cli::grown_data_test {
namespace {

using testing::expect_text;
using testing::json_of;

class GrownDataTest : public testing::ProgramTest {
 protected:
  GrownDataTest() {
    write(120);
    const char* const line =
        "train --dataset sums.csv --target sum --float --epochs 30 --out float --model mlp --width 0.25 --batch-size 10 --threads 1";
    EXPECT_EQ(program(line).status, 0);
  }

  /// The first rows are always the same; further ones lie elsewhere by `shift`.
  void write(int rows, double shift = 0) const {
    std::string table = "a,b,sum\n";
    for (int i = 0; i < rows; ++i) {
      const double a = (i * 7 % 31 - 15) / 10.0 + (i < 120 ? 0 : shift), b = (i * 11 % 29 - 14) / 10.0;
      table += concat(a, ",", b, ",", 20 + 3 * a - b, "\n");
    }
    place_.write("sums.csv", table);
  }
};

TEST_F(GrownDataTest, MeansAndDeviationsStayThoseOfTheRun) {
  write(150, 1);
  const testing::Outcome told = program("quantize --run float --epochs 2 --out bits");
  ASSERT_EQ(told.status, 0) << told.err;
  expect_text(
      told.err,
      {"sums.csv has changed since the run began: it has 150 examples now, not 120, and examples that the run was trained with may measure it; its parts are made "
       "anew, means and deviations stay those of the run\n"});
  const nlohmann::json before = json_of(path("float/summary.json"));
  for (const char* run : {"bits", "bits/calibrated", "bits/trained"}) {
    const nlohmann::json now = json_of(path(run) / "summary.json");
    for (const char* key : {"input_mean", "input_std", "target_mean", "target_std"})
      EXPECT_EQ(now[key], before[key]) << run << " " << key;
  }
  EXPECT_GT(nlohmann::json::parse(program("eval bits --integer --json").out)["r2"].get<double>(), 0.9);
  EXPECT_EQ(program("eval bits").err.find("has changed"), std::string::npos) << "these are its own data";
  expect_text(program("eval float").err, {"it has 150 examples now, not 120"});
  expect_text(program("train --resume --out float --epochs 31").err, {"has changed since the run began", "train anew"});
}

TEST_F(GrownDataTest, AQuantizationGoesOn) {
  write(150, 1);
  EXPECT_EQ(program("quantize --run float --epochs 2 --out whole").status, 0);
  std::filesystem::copy(path("whole"), path("halves"), std::filesystem::copy_options::recursive);
  nlohmann::json plan = json_of(path("halves/quantize.json"));
  plan["complete"] = false;
  place_.write("halves/quantize.json", plan.dump());
  std::filesystem::remove_all(path("halves/trained"));
  EXPECT_EQ(program("quantize --resume --out halves").status, 0);
  for (const char* file : {"checkpoint.safetensors", "trained/checkpoint.safetensors"})
    EXPECT_EQ(testing::bytes_of(path("halves") / file), testing::bytes_of(path("whole") / file)) << file;
}

TEST_F(GrownDataTest, OfAnotherKindTheyAreRefused) {
  write(240, 4);
  const testing::Outcome told = program("quantize --run float --epochs 1 --out bits");
  EXPECT_EQ(told.status, 1);
  expect_text(told.err, {"sums.csv has changed since the run began: its numbers have other means or deviations now"});
  EXPECT_FALSE(std::filesystem::exists(path("bits/quantize.json")));
}

}  // namespace
}  // namespace miniqat::cli::grown_data_test
