// `predict` on examples whose answers nobody knows, and what becomes of a data set that grows after a run.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tables.h"
#include "tests/datasets/dataset_files.h"

namespace miniqat::cli::predict_new_test {
namespace {

using Json = nlohmann::json;
using testing::expect_error;
using testing::expect_success;
using testing::expect_text;
using testing::json_of;

constexpr const char* kShort = " --model mlp --width 0.25 --batch-size 10 --threads 1 ";

/// Runs on the tables: "sum" (a number), "flags" (two labels), "up" (a class), "same" (nothing to predict).
class PredictNewTest : public testing::SharedPlaceTest<PredictNewTest> {
 public:
  static void make() {
    testing::write_tables(*place_);
    std::string rows = "a,b,kind\n";
    for (int i = 0; i < 60; ++i) rows += concat(i % 7 / 4.0, ",", i % 5, ",", i % 7 > 3 ? "high" : "low", "\n");
    place_->write("kinds.csv", rows);
    for (const char* data :
         {"sums.csv --target sum --out sum", "flags.csv --target up,right --out flags",
          "kinds.csv --target kind --out kind", "sums.csv --target sum --task reconstruct --out same"})
      EXPECT_EQ(program(concat("train --epochs 2 --dataset ", data, kShort)).status, 0) << data;
    place_->write("new.csv", "a,b\n1.5,0.5\n-1,2\n0.25,-1\n");
    place_->write("known.csv", "a,b,sum\n1.5,0.5,24\n-1,2,15\n0.25,-1,21.75\n");
  }

 protected:
  static Json json(const std::string& line) {
    const testing::Outcome told = program(line + " --json --threads 1");
    EXPECT_EQ(told.status, 0) << line << "\n" << told.err;
    return Json::parse(told.out);
  }
};

TEST_F(PredictNewTest, NumbersStandBesideWhatIsUnknown) {
  for (const std::string how : {"", " --integer"}) {
    SCOPED_TRACE(how);
    const Json known = json("predict sum --dataset known.csv" + how)["examples"],
               unknown = json("predict sum --dataset new.csv" + how)["examples"];
    ASSERT_EQ(unknown.size(), 3u) << "without numbers all are asked for";
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(unknown[i]["example"], i);
      EXPECT_EQ(unknown[i]["outputs"], known[i]["outputs"]);
      EXPECT_NEAR(unknown[i]["outputs"][0].get<double>(), 20, 15) << "in the units of the data";
      EXPECT_FALSE(unknown[i].contains("targets"));
      EXPECT_TRUE(known[i].contains("targets"));
      EXPECT_TRUE(unknown[i]["label"].is_null());
    }
    EXPECT_EQ(json("predict sum 2 0 --dataset new.csv" + how)["examples"], Json({unknown[2], unknown[0]}));
  }
  const std::string table = expect_success(program("predict sum --dataset new.csv --threads 1")).out;
  expect_text(table, {"example  target  predicted\n0        -       ", "\n1        -       ", "\n2        -       "});
}

TEST_F(PredictNewTest, SingleAnswersMayBeUnknown) {
  place_->write("some.csv", "a,sum,b\n1.5,?,0.5\n-1,15,2\n");
  const testing::Outcome told = program("predict sum --dataset some.csv --threads 1");
  EXPECT_EQ(told.status, 0) << told.err;
  expect_text(told.out, {"\n0        -       ", "\n1        15      "});
  place_->write("some_kinds.csv", "a,b,kind\n1.5,2,\n0,3,low\n");
  const Json kinds = json("predict kind --dataset some_kinds.csv")["examples"];
  EXPECT_TRUE(kinds[0]["label"].is_null());
  EXPECT_EQ(kinds[1]["label"], 1);
}

TEST_F(PredictNewTest, SinglePicturesOfATableMayHaveNoLabel) {
  const auto rows = [](int count, int unknown) {
    std::string text = "label";
    for (int p = 0; p < 16; ++p) text += concat(",p", p);
    for (int i = 0; i < count; ++i) {
      text += "\n" + (i < unknown ? (i == 1 ? "?" : "") : std::to_string(i % 2));
      for (int p = 0; p < 16; ++p) text += concat(",", 10 * p + 100 * (i % 2) + i % 5);
    }
    return text + "\n";
  };
  place_->write("pictures.csv", rows(60, 0));
  EXPECT_EQ(program(concat("train --epochs 2 --dataset pictures.csv --out pictures", kShort)).status, 0);
  for (const int unknown : {1, 4})
    for (const bool has_names : {true, false}) {
      const std::string text = rows(4, unknown);
      place_->write("new_pictures.csv", has_names ? text : text.substr(text.find('\n') + 1));
      const Json told = json("predict pictures --dataset new_pictures.csv")["pictures"];
      ASSERT_EQ(told.size(), 4u);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(told[i]["label"], i < unknown ? Json(nullptr) : Json(i % 2));
    }
  place_->write("new_pictures.csv", rows(4, 1));
  expect_error(program("eval pictures --dataset new_pictures.csv"), 1, {"a value is missing"});
}

/// The number of the column to predict would be that of a feature.
TEST_F(PredictNewTest, FeaturesAloneOfATableWithoutNames) {
  std::string rows;
  for (int i = 0; i < 60; ++i) rows += concat(20 + i % 7 - i % 5, ".5,", i % 7, ".5,", i % 5, ".5\n");
  place_->write("nameless.csv", rows);
  place_->write("nameless_new.csv", "1.5,2.5\n3.5,0.5\n");
  for (const char* how : {"", "--no-standardise --learning-rate 1e-4"}) {
    const char* train = "train --overwrite --epochs 1 --dataset nameless.csv --target 0 --out nameless ";
    EXPECT_EQ(program(concat(train, how, kShort)).status, 0) << how;
    EXPECT_EQ(json("predict nameless --dataset nameless_new.csv")["examples"].size(), 2u) << how;
  }
}

TEST_F(PredictNewTest, EveryTaskAndFormat) {
  place_->write("new_kinds.csv", "a,b\n1.5,2\n0,3\n");
  const Json kinds = json("predict kind --dataset new_kinds.csv")["examples"];
  EXPECT_TRUE(kinds[0]["label"].is_null());
  EXPECT_EQ(kinds[0]["class"], kinds[0]["predicted"] == 0 ? "high" : "low");
  EXPECT_EQ(kinds[0]["scores"].size(), 2u);
  expect_text(expect_success(program("predict kind --integer --dataset new_kinds.csv --threads 1")).out,
              {"example  label  class  score", "\n1        -      "});
  EXPECT_EQ(json("predict flags --dataset new.csv")["examples"][0]["probabilities"].size(), 2u);
  EXPECT_TRUE(json("predict same --dataset new.csv")["examples"][0].contains("error"));

  const float numbers[] = {1.5F, 0.5F, -1, 2, 0.25F, -1};
  const std::string array = testing::npy_bytes("<f4", "3, 2", {reinterpret_cast<const char*>(numbers), sizeof numbers});
  place_->write("new.npy", array);
  std::filesystem::create_directories(path("arrays"));
  place_->write("arrays/x_test.npy", array);
  place_->write("new.ts", "@univariate true\n@data\n1,2,3\n");
  const Json of_table = json("predict sum --dataset new.csv")["examples"];
  for (const std::string name : {"new.npy", "arrays"})
    EXPECT_EQ(json("predict sum --dataset " + name)["examples"], of_table) << name;
  expect_error(program("predict sum --dataset new.ts"), 1, {"the input is [", ",2]", "examples of", "are [3,1]"});
}

TEST_F(PredictNewTest, ColumnsAreThoseOfTheRun) {
  EXPECT_EQ(json_of(path("sum/summary.json"))["input_names"], Json({"a", "b"}));
  place_->write("turned.csv", "b,a\n0.5,1.5\n");
  place_->write("labelled.csv", "b,a,sum\n0.5,1.5,24\n1,2,25\n");
  place_->write("more.csv", "a,b,Sum\n0.5,1.5,24\n");
  const std::string learned = "; the network was trained on a, b, in this order";
  expect_error(program("predict sum --dataset turned.csv"), 1, {"turned.csv\" has the features b, a" + learned});
  expect_error(program("eval sum --dataset labelled.csv"), 1, {"labelled.csv\" has the features b, a" + learned});
  expect_error(program("predict sum --dataset more.csv"), 1, {"more.csv\" has the features a, b, Sum" + learned});
}

/// Without --target recordings have all columns to predict.
TEST_F(PredictNewTest, TargetsOfOtherDataLieInTheOrderOfTheRun) {
  std::string run_labels = "file,a,b\n", other_labels = "file,b,a\n";
  for (int i = 0; i < 24; ++i) {
    for (const char* folder : {"order/", "turned/"})
      place_->write(concat(folder, i, ".csv"), concat(i, ".5\n", i + 1, ".5\n"));
    run_labels += concat(i, ".csv,", i, ".5,", 100 - i, ".5\n");
    other_labels += concat(i, ".csv,", 100 - i, ".5,", i, ".5\n");
  }
  place_->write("order/labels.csv", run_labels);
  place_->write("turned/labels.csv", other_labels);
  EXPECT_EQ(program(concat("train --epochs 1 --dataset ./order --out two", kShort)).status, 0);
  EXPECT_EQ(program("eval two --threads 1").status, 0);
  expect_error(program("eval two --dataset ./turned --threads 1"), 1,
               {"eval_graph.json: its outputs are a, b, in this order, and the targets of ", "turned are b, a"});
}

/// As runs of before did: their names are unknown, and the order counts.
TEST_F(PredictNewTest, WithoutRecordedNamesTheOrderCountsAndIsSaid) {
  std::filesystem::copy(path("sum"), path("older"), std::filesystem::copy_options::recursive);
  for (const std::string file : {"older/dataset.json", "older/summary.json"}) {
    Json json = json_of(path(file));
    json.erase("input_names");
    place_->write(file, json.dump());
  }
  place_->write("turned.csv", "b,a\n0.5,1.5\n");
  expect_text(program("predict older --dataset turned.csv").err,
              {"the run keeps no names of columns, and takes these in their order: b, a"});
}

TEST_F(PredictNewTest, WhoMeasuresNeedsAnswers) {
  for (const char* line : {"eval sum --dataset new.csv", "verify sum --no-runtimes --dataset new.csv"})
    expect_error(program(line), 1, {"has no column \"sum\"; its columns are a, b"});
  expect_error(program("predict sum --dataset new.csv --split train"), 2,
               {"has no training examples, all are test examples"});
  expect_error(program("predict sum"), 2, {"no example is given", "--dataset alone asks for all of another"});
  expect_error(program("predict sum new.csv"), 2, {"new.csv is no number of an example: --dataset asks for all"});
  expect_error(program("predict sum 3 --dataset new.csv"), 2, {"there is no example 3, only 0 to 2"});
  expect_error(program("predict sum x.csv"), 2, {"neither the number of an example"});
}

}  // namespace
}  // namespace miniqat::cli::predict_new_test
