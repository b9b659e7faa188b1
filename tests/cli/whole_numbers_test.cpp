// Whole numbers as answers: --task says whether they are classes or to be predicted, on every way that reads them.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tables.h"
#include "tests/datasets/dataset_files.h"
#include "tests/errors.h"

namespace miniqat::cli::whole_numbers_test {
namespace {

namespace fs = std::filesystem;
using testing::json_of;
using testing::miniqat;
using testing::Outcome;

constexpr const char* kShort = " --model mlp --width 0.25 --batch-size 10 --threads 1 ";

/// Elements of a .npy file, little-endian.
template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Ages of 120 examples: few differ, so that they would be classes.
class WholeNumbersTest : public ::testing::Test {
 protected:
  WholeNumbersTest() {
    testing::write_tables(place_);
    std::string table = "a,b,age\n", series = "@classLabel true 25 30 35 40 45 50 55\n@data\n", x, bytes, y, two;
    for (int i = 0; i < 120; ++i) {
      const std::int64_t step = i * 5 % 7, age = 25 + 5 * step;
      const float a = static_cast<float>(step) / 2 - 1, b = static_cast<float>(i % 11) / 10;
      table += concat(a, ",", b, ",", age, "\n");
      series += concat(a, ",", b, ":", age, "\n");
      x += raw(a) + raw(b);
      y += raw(age);
      two += raw(age) + raw(-age);
      for (int pixel = 0; pixel < 4; ++pixel) bytes += static_cast<char>(30 * step + pixel);
    }
    place_.write("ages.csv", table);
    place_.write("ages.ts", series);
    for (const auto& [name, inputs, answers] :
         {std::tuple("array", testing::npy_bytes("<f4", "120, 2", x), testing::npy_bytes("<i8", "120,", y)),
          {"two", testing::npy_bytes("<f4", "120, 2", x), testing::npy_bytes("<i8", "120, 2", two)},
          {"pictures", testing::npy_bytes("|u1", "120, 2, 2", bytes), testing::npy_bytes("<i8", "120,", y)}}) {
      fs::create_directory(place_.path() / name);
      place_.write(concat(name, "/x.npy"), inputs);
      place_.write(concat(name, "/y.npy"), answers);
    }
  }

  /// A failure is one of the test.
  Outcome ended(const std::string& line) const {
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome;
  }
  std::string run(const std::string& line) const { return ended(line).out; }
  /// The first line of the error.
  std::string refused(const std::string& line) const {
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_NE(outcome.status, 0) << line;
    return outcome.err.substr(0, outcome.err.find('\n'));
  }
  std::string checkpoint(const std::string& run) const {
    return testing::bytes_of(place_.path() / run / "checkpoint.safetensors");
  }

  testing::TempDir place_;
};

TEST_F(WholeNumbersTest, ArePredictedWhereTheTaskIsARegression) {
  for (const char* data : {"ages.csv --target age", "array", "two", "pictures", "ages.ts"}) {
    SCOPED_TRACE(data);
    const std::string line = concat("train --float --epochs 2 --overwrite --out run --dataset ./", data, kShort);
    testing::expect_text(run(line + "--task regress"), {"task regress: from ", "measured by R^2"});
    const std::string implied = checkpoint("run");
    EXPECT_NEAR(json_of(place_.path() / "run/summary.json")["target_mean"][0].get<double>(), 40, 1);
    EXPECT_GT(nlohmann::json::parse(run("eval run --json"))["mae"].get<double>(), 0);
    EXPECT_EQ(nlohmann::json::parse(run("predict run 1 --json")).dump().find("\"targets\":[null"), std::string::npos);
    run(line + "--task regress --answers targets");
    EXPECT_EQ(checkpoint("run"), implied);
  }
}

TEST_F(WholeNumbersTest, APictureAsAFileIsAnsweredInTheSameUnits) {
  run(concat("train --float --epochs 2 --out run --dataset ./pictures --task regress", kShort));
  datasets::Picture sixth = testing::make_picture(2, 2, 1);
  sixth.pixels = {120, 121, 122, 123};
  place_.write("sixth.png", testing::png_bytes(sixth));
  const auto answer = [&](const std::string& picture) {
    return nlohmann::json::parse(run("predict run " + picture + " --json --threads 1"))["pictures"][0]["outputs"];
  };
  // The first of the test part.
  const nlohmann::json of_number = answer("0");
  EXPECT_GT(of_number.at(0).get<double>(), 10) << "years";
  EXPECT_EQ(answer("sixth.png"), of_number);
}

TEST_F(WholeNumbersTest, AreReadAlikeByAllCommands) {
  const std::string line = concat("train --dataset ages.csv --target age --task regress --float --epochs 30", kShort);
  run(line + "--out float");
  run(line + "--out halves --stop-at 17");
  run("train --resume --out halves");
  EXPECT_EQ(checkpoint("halves"), checkpoint("float"));
  EXPECT_TRUE(testing::mentions(refused("train --resume --out float --task auto --epochs 31"),
                                {"--task auto is classify for ", "differs from the run's own (\"regress\")"}));
  run("quantize --run float --weight-bits 8 --activation-bits 8 --epochs 2 --out bits");
  const nlohmann::json all = nlohmann::json::parse(run("eval bits --integer --json"));
  EXPECT_GT(all["r2"].get<double>(), 0.8);
  const nlohmann::json first = nlohmann::json::parse(run("predict bits 0 --json"))["examples"][0];
  EXPECT_NEAR(first["targets"][0].get<double>(), 45, 1e-3) << "the sixth row is the first of the test part";
  run("export bits --out net.miniqat");
  EXPECT_EQ(nlohmann::json::parse(run("eval --model net.miniqat --dataset ages.csv --target age --json"))["r2"],
            all["r2"]);
  run("sensitivity --run float --bits 4 --out sensitivity");
  EXPECT_GT(json_of(place_.path() / "sensitivity/sensitivity.json")["float"]["r2"].get<double>(), 0.8);
  run("report bits --out page.html --threads 1");
  run("calibrate --run float --out calibrated");
}

/// Figures of one number beside the targets of another would look like figures.
TEST_F(WholeNumbersTest, SeveralAreMeasuredInTheOrderOfTheModel) {
  run(concat("train --dataset ages.csv --target age,b --task regress --steps 2 --out both", kShort));
  run("export both --out both.miniqat");
  run("eval --model both.miniqat --dataset ages.csv --target age,b");
  testing::expect_text(refused("eval --model both.miniqat --dataset ages.csv --target b,age"),
                       {"both.miniqat: its outputs are age, b, in this order, and the targets of "});
}

TEST_F(WholeNumbersTest, AreLabelsWhereTheTaskIsThat) {
  const std::string data = concat("train --dataset flags.csv --target up --float --epochs 2", kShort);
  testing::expect_text(run(data + "--task multilabel --out label"), {"task multilabel: from [3] to 1 number"});
  testing::expect_text(run(data + "--out class"), {"task classify: from [3] to 2 classes, measured by accuracy"});
}

TEST_F(WholeNumbersTest, AreClassesOtherwiseAndTheTaskIsSaid) {
  const std::string data = concat("train --dataset array --inputs numbers --float --epochs 1 --out ", "run", kShort);
  testing::expect_text(run(data), {"task classify: from [2] to 56 classes, measured by accuracy"});
  const std::string pictures = run(concat("train --dataset ./pictures --float --epochs 1 --out seen", kShort));
  EXPECT_EQ(pictures.find("task "), std::string::npos) << "nobody expects anything else of pictures";
}

TEST_F(WholeNumbersTest, ErrorsNameTheFlagThatHelps) {
  const auto error = [&](const std::string& line) { return refused(concat("train --steps 1 --out x ", line, kShort)); };
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"--dataset ages.csv --target age --task regress --answers classes",
       {"--answers classes does not go with --task regress: leave one of the two out"}},
      {"--dataset ages.csv --target age --task classify --answers targets",
       {"--answers targets does not go with --task classify"}},
      {"--dataset sums.csv --target sum --task classify",
       {"sums.csv has no classes", "--task regress", "--answers classes"}},
      {"--dataset flags.csv --target up,right --task classify", {"--task multilabel"}},
      {"--dataset ./two", {"must be integers, [n] or [n, 1]; --answers targets makes them numbers to predict"}},
      {"--dataset synthetic --task regress", {"synthetic has classes, no numbers to predict", "--task classify"}}};
  for (const auto& [line, parts] : cases) EXPECT_TRUE(testing::mentions(error(line), parts)) << line;
  EXPECT_FALSE(fs::exists(place_.path() / "x"));
}

TEST_F(WholeNumbersTest, AReconstructionPredictsNothing) {
  for (const char* data : {"sums.csv --target sum", "sums.csv --inputs numbers"}) {
    const Outcome outcome =
        ended(concat("train --task reconstruct --float --epochs 1 --overwrite --out run --dataset ", data, kShort));
    testing::expect_text(outcome.err, {"note: "});
    EXPECT_EQ((outcome.out + outcome.err).find("predict"), std::string::npos) << outcome.err;
  }
}

TEST_F(WholeNumbersTest, AnUnfinishedRunIsListedWithItsMeasure) {
  run(concat("train --dataset ages.csv --target age --task regress --float --epochs 1 --out runs/one", kShort));
  testing::expect_text(run("runs"), {" R^2 "});
  fs::remove(place_.path() / "runs/one/summary.json");
  const std::string unfinished = run("runs");
  testing::expect_text(unfinished, {" R^2 "});
  EXPECT_EQ(unfinished.find("accuracy"), std::string::npos) << unfinished;
  const nlohmann::json listed = nlohmann::json::parse(run("runs --json"))[0];
  EXPECT_TRUE(listed.contains("test_r2") && listed.contains("validation_r2")) << listed;
  run(concat("train --dataset ages.csv --target age --float --epochs 1 --out runs/two", kShort));
  testing::expect_text(run("runs"), {" result "});
}

}  // namespace
}  // namespace miniqat::cli::whole_numbers_test
