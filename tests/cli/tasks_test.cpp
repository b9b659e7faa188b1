// Tasks other than classes by the program, from files of numbers to integers.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/files/files.h"
#include "core/files/safetensors.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tables.h"
#include "tests/errors.h"

namespace miniqat::cli::tasks_test {
namespace {

namespace fs = std::filesystem;
using testing::json_of;
using testing::miniqat;
using testing::Outcome;

class TasksTest : public ::testing::Test {
 protected:
  TasksTest() { testing::write_tables(place_); }

  /// Returns what the program prints; a failure is one of the test.
  std::string run(const std::string& line) const {
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    return outcome.out;
  }
  std::string refused(const std::string& line) const {
    const Outcome outcome = miniqat(line, place_.path());
    EXPECT_NE(outcome.status, 0) << line;
    return outcome.err;
  }

  testing::TempDir place_;
};

constexpr const char* kShort = " --model mlp --width 0.25 --batch-size 10 --threads 1 ";

TEST_F(TasksTest, RangesTakeAllValuesWhereTheAnswerIsANumber) {
  const auto ranges_of = [&](const std::string& run) {
    const std::string graph = read_file(place_.path() / run / "train_graph.json");
    const std::string written = json_of(place_.path() / run / "config.json")["ranges"];
    return concat(written, graph.find("\"all_values\"") != std::string::npos ? ", all values" : "",
                  graph.find("\"moving_average\"") != std::string::npos ? ", averages" : "");
  };
  const std::string regress = concat("train --dataset sums.csv --target sum --epochs 1", kShort);
  const std::string classify = concat("train --dataset flags.csv --target up --epochs 1", kShort);
  run(regress + "--out number");
  EXPECT_EQ(ranges_of("number"), "by-task, all values");
  run("train --resume --out number --epochs 2");
  EXPECT_EQ(ranges_of("number"), "by-task, all values");
  run(classify + "--out class");
  EXPECT_EQ(ranges_of("class"), "auto, averages");
  run("train --resume --out class --ranges by-task --epochs 2");
  EXPECT_EQ(ranges_of("class"), "auto, averages");
  run(concat("train --dataset flags.csv --target up,right --epochs 1 --out labels", kShort));
  EXPECT_EQ(ranges_of("labels"), "auto, averages");
  run("train --dataset synthetic-hums --model autoencoder --width 0.25 --steps 2 --out hums");
  EXPECT_EQ(ranges_of("hums"), "by-task, all values");
  // As runs of earlier versions say it.
  run(regress + "--ranges auto --out earlier");
  EXPECT_EQ(ranges_of("earlier"), "auto, averages");
  run("train --resume --out earlier --epochs 2");
  EXPECT_EQ(ranges_of("earlier"), "auto, averages");

  run(regress + "--float --out float");
  run("quantize --run float --epochs 1 --out bits");
  EXPECT_EQ(json_of(place_.path() / "bits/quantize.json")["training"]["ranges"], "by-task");
  EXPECT_EQ(ranges_of("bits/trained"), "by-task, all values");

  // Of the first nobody knows it before the data are read.
  for (const auto& [line, error] :
       {std::pair(regress + "--ema-decay 0.9", "--ema-decay has no effect with --ranges by-task and --task regress"),
        std::pair(regress + "--task regress --ema-decay 0.9", "--ema-decay has no effect with --ranges by-task"),
        std::pair(regress + "--range-learning-rate 0.1", "has no effect with --ranges auto and more than 4 bits"),
        std::pair(classify + "--range-learning-rate 0.1", "--range-learning-rate has no effect with --ranges auto and"),
        std::pair(classify + "--asymmetric-weights", "has no effect with --ranges auto --weight-bits 8, whose")})
    EXPECT_NE(refused(line + " --out refused").find(error), std::string::npos) << refused(line + " --out refused");
  EXPECT_FALSE(fs::exists(place_.path() / "refused/config.json"));
  run(classify + "--ema-decay 0.9 --out asked");
}

TEST_F(TasksTest, ARunGoesOnWithTheTaskThatItsDataMean) {
  const std::string flags = concat(" --float --steps 2", kShort);
  run("train --dataset sums.csv --target sum --out guessed" + flags);
  run("train --resume --out guessed --task auto --steps 3");
  EXPECT_EQ(json_of(place_.path() / "guessed/summary.json")["steps"], 3);
  EXPECT_EQ(json_of(place_.path() / "guessed/config.json")["task"], "regress");
  // A loss for numbers: the network of another task is not even made.
  run("train --dataset flags.csv --target up --task reconstruct --huber 1 --out asked" + flags);
  testing::expect_text(refused("train --resume --out asked --task auto --steps 3"),
                       {"--task auto is classify for ", "flags.csv, and differs from the run's own (\"reconstruct\")"});
  EXPECT_EQ(json_of(place_.path() / "asked/summary.json")["steps"], 2);
}

TEST_F(TasksTest, ARegressionGoesFromATableToIntegersInC) {
  const std::string trained =
      run(concat("train --dataset sums.csv --target sum --float --epochs 30 --out float", kShort));
  EXPECT_NE(trained.find("task regress: from [2] to 1 number, measured by R^2"), std::string::npos) << trained;
  const nlohmann::json summary = json_of(place_.path() / "float/summary.json");
  EXPECT_EQ(summary["task"], "regress");
  EXPECT_GT(summary["test_r2"].get<double>(), 0.95);
  EXPECT_EQ(summary["target_mean"].size(), 1u);
  EXPECT_NEAR(summary["target_mean"][0].get<double>(), 20, 1);
  EXPECT_EQ(json_of(place_.path() / "float/config.json")["learning_rate"], 0.01);

  const std::string table = run("quantize --run float --weight-bits 8 --activation-bits 8 --epochs 2 --out bits");
  for (const char* part : {"validation R^2", "test R^2", "integers"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  const nlohmann::json result = nlohmann::json::parse(run("eval bits --integer --json"));
  EXPECT_GT(result["r2"].get<double>(), 0.9);
  EXPECT_FALSE(result.contains("accuracy"));
  EXPECT_NE(run("eval bits").find("R^2 "), std::string::npos);
  EXPECT_NE(run("runs .").find("R^2 "), std::string::npos);
  const nlohmann::json verified = nlohmann::json::parse(run("verify bits --no-runtimes --c --json"));
  EXPECT_GT(verified["runtimes"][0]["r2"].get<double>(), 0.9);
  EXPECT_EQ(verified["runtimes"][0]["outputs"]["share"], 1.0) << "C computes what the engine computes";
  const nlohmann::json predicted = nlohmann::json::parse(run("predict bits 0 --json"));
  EXPECT_NEAR(predicted["examples"][0]["outputs"][0].get<double>(), 20, 8) << "in the units of the table";
  EXPECT_NEAR(predicted["examples"][0]["targets"][0].get<double>(), 20, 8);
  run("sensitivity --run float --bits 4 --out sensitivity");
  EXPECT_GT(json_of(place_.path() / "sensitivity/sensitivity.json")["float"]["r2"].get<double>(), 0.9);
}

/// A calibration would standardise with the run's means, a training with those of today.
TEST_F(TasksTest, ATableInOtherUnitsIsNotThatOfTheRun) {
  run(concat("train --dataset sums.csv --target sum --float --epochs 1 --out float", kShort));
  std::string table = "a,b,sum\n";
  for (int i = 0; i < 120; ++i) table += concat(100 + i % 31, ",", i % 29, ",", i % 7 + 0.5, "\n");
  place_.write("sums.csv", table);
  for (const char* line : {"train --resume --out float --epochs 2", "quantize --run float --epochs 1 --out bits"}) {
    const std::string text = refused(line);
    EXPECT_NE(text.find("has changed since the run began: its numbers have other means or deviations now"),
              std::string::npos)
        << line << "\n"
        << text;
  }
  EXPECT_FALSE(fs::exists(place_.path() / "bits/quantize.json"));
}

TEST_F(TasksTest, SensitivitySharesLessThanTwoBatches) {
  run("train --dataset sums.csv --target sum --model mlp --width 0.25 --batch-size 64 --threads 1 --float --epochs 60 --out float");
  const std::string text = run("sensitivity --run float --bits 8,2 --out shared");
  EXPECT_NE(text.find("1 batch of 50 training examples for calibration, 50 others for evaluation (all there are)"),
            std::string::npos)
      << text;
  const nlohmann::json all = json_of(place_.path() / "shared/sensitivity.json");
  EXPECT_EQ(all["pictures"], 50);
  EXPECT_LT(std::abs(all["together"][0]["loss_increase"].get<double>()), 0.02) << "ranges are those of many examples";
  EXPECT_GT(all["together"][1]["loss_increase"].get<double>(), 0.02);
}

TEST_F(TasksTest, AHuberLossIsKept) {
  run(concat("train --dataset sums.csv --target sum --float --epochs 2 --huber 0.5 --out float", kShort));
  run("quantize --run float --weight-bits 8 --activation-bits 8 --epochs 1 --out bits");
  for (const char* name : {"float", "bits"}) {
    EXPECT_EQ(json_of(place_.path() / name / "config.json")["huber"], 0.5) << name;
    EXPECT_NE(testing::bytes_of(place_.path() / name / "train_graph.json").find("\"Huber\""), std::string::npos)
        << name;
  }
  testing::expect_text(refused("train --huber 1 --steps 1 --out x"), {"--huber is", "numbers"});
  testing::expect_text(refused(concat("train --dataset flags.csv --target up,right --huber 1 --out x", kShort)),
                       {"huber", "numbers"});
}

TEST_F(TasksTest, EachOfSeveralNumbersHasItsUnit) {
  std::string table = "a,b,grams,metres\n";
  for (int i = 0; i < 120; ++i) {
    const double a = (i * 7 % 31 - 15) / 10.0, b = (i * 11 % 29 - 14) / 10.0;
    table += concat(a, ",", b, ",", 5000 + 1000 * a, ",", 0.5 - b / 100, "\n");
  }
  place_.write("two.csv", table);
  const std::string trained =
      run(concat("train --dataset two.csv --target grams,metres --float --epochs 20 --out two", kShort));
  EXPECT_EQ(trained.find("MAE"), std::string::npos) << "a mean of grams and metres: " << trained;
  const nlohmann::json all = nlohmann::json::parse(run("eval two --json"));
  ASSERT_EQ(all["targets"].size(), 2u);
  const nlohmann::json &grams = all["targets"][0], &metres = all["targets"][1];
  EXPECT_EQ(grams["target"], "grams");
  EXPECT_GT(grams["mae"].get<double>(), 1);
  EXPECT_LT(metres["mae"].get<double>(), 0.01);
  for (const char* key : {"r2", "mae", "mse"})
    EXPECT_NEAR(all[key].get<double>(), (grams[key].get<double>() + metres[key].get<double>()) / 2,
                1e-9 * all[key].get<double>())
        << key;
  const nlohmann::json predicted =
      nlohmann::json::parse(run("predict two 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 --json"));
  double error = 0;
  ASSERT_EQ(all["examples"], 20);
  for (const nlohmann::json& one : predicted["examples"])
    error += std::abs(one["outputs"][0].get<double>() - one["targets"][0].get<double>()) / 20;
  EXPECT_NEAR(grams["mae"].get<double>(), error, 1e-3 * error);
  testing::expect_text(run("eval two"), {"target  ", "MAE, in its unit", "\ngrams ", "\nmetres "});
  run(concat("train --dataset sums.csv --target sum --float --epochs 1 --out one", kShort));
  EXPECT_FALSE(nlohmann::json::parse(run("eval one --json")).contains("targets"));
}

TEST_F(TasksTest, ARunIsFedWithItsTargets) {
  run(concat("train --dataset sums.csv --target sum --float --steps 2 --out float", kShort));
  run("run float --train --index 0 --split train --fetch targets --out out.safetensors");
  const Tensor fed = read_safetensors(place_.path() / "out.safetensors").tensors.at("targets");
  const nlohmann::json summary = json_of(place_.path() / "float/summary.json");
  // The first row: a is -1.5, b is -1.4.
  const double sum = 20 + 3 * -1.5 + 1.4;
  EXPECT_NEAR(fed.values<float>()[0] * summary["target_std"][0].get<double>() + summary["target_mean"][0].get<double>(),
              sum, 1e-4);
}

TEST_F(TasksTest, AReportFindsTheFloatRunByWhatItMeasures) {
  const std::string train = concat("train --dataset sums.csv --target sum --float --out float", kShort);
  run(train + "--epochs 3");
  run("quantize --run float --weight-bits 8 --activation-bits 8 --epochs 1 --out bits");
  const auto float_run = [&] {
    run("report bits --out page.html --threads 1");
    const std::string page = testing::bytes_of(place_.path() / "page.html");
    const std::size_t place = page.find("\"float_run\":\"") + 13;
    return page.substr(place, page.find('"', place) - place);
  };
  EXPECT_EQ(float_run(), "float");
  run(train + "--epochs 1 --overwrite");
  EXPECT_EQ(float_run(), "") << "another run is at its place";
}

TEST_F(TasksTest, ExportsKnowTaskAndUnits) {
  std::string table = "a,b,target\n";
  for (int i = 0; i < 120; ++i) {
    const double a = 100 + i * 7 % 31, b = (i * 11 % 29 - 14) / 1000.0;
    table += concat(a, ",", b, ",", 500 + 30 * a - 4000 * b, "\n");
  }
  place_.write("own.csv", table);
  run(concat("train --dataset own.csv --epochs 10 --out bits", kShort));
  const nlohmann::json of_run = nlohmann::json::parse(run("eval bits --integer --json"));
  EXPECT_GT(of_run["r2"].get<double>(), 0.5);

  run("export bits --out net.miniqat");
  const nlohmann::json of_file = nlohmann::json::parse(run("eval --model net.miniqat --dataset own.csv --json"));
  for (const char* key : {"r2", "mae", "mse", "loss", "examples"}) EXPECT_EQ(of_file[key], of_run[key]) << key;
  testing::expect_text(refused("eval --model net.miniqat --dataset own.csv --by-class"), {"--by-class", "regress"});
  table.replace(table.find("target"), 6, "yield");
  place_.write("other.csv", table);
  testing::expect_text(refused("eval --model net.miniqat --dataset other.csv"), {"the input is [2]", "[3]"});
  EXPECT_EQ(nlohmann::json::parse(run("eval --model net.miniqat --dataset other.csv --target yield --json"))["r2"],
            of_run["r2"]);
  testing::expect_text(refused("eval bits --target yield"), {"--target goes with --model"});

  run("export bits --format json --out net.json");
  const nlohmann::json json = json_of(place_.path() / "net.json"),
                       summary = json_of(place_.path() / "bits/summary.json");
  EXPECT_EQ(json["task"], "regress");
  EXPECT_EQ(json["class_names"], nlohmann::json::array({"target"}));
  EXPECT_EQ(json["input_mean"], summary["input_mean"]);
  EXPECT_EQ(json["output_std"], summary["target_std"]);
  run("train --dataset own.csv --float --steps 2 --out float" + std::string(kShort));
  const std::string mean = exact(json["output_mean"][0].get<float>());
  for (const std::string line :
       {"bits --out net.onnx", "bits --out net.tflite", "float --format onnx-float --out f.onnx"}) {
    run("export " + line);
    const std::string bytes = testing::bytes_of(place_.path() / line.substr(line.rfind(' ') + 1));
    for (const std::string& part : {std::string("input_mean"), std::string("output_std"), std::string("regress"),
                                    std::string("class_names"), mean})
      EXPECT_NE(bytes.find(part), std::string::npos) << line << ": " << part;
  }

  const std::string words = run("export bits --out net.c");
  for (const char* part :
       {"input: integers from 0 to 255, scale ", "standardised: net_quantize", "net_dequantize gives"})
    EXPECT_NE(words.find(part), std::string::npos) << part << "\n" << words;
}

TEST_F(TasksTest, SeveralLabelsAreTwoColumnsOfZerosAndOnes) {
  const std::string trained =
      run(concat("train --dataset flags.csv --target up,right --epochs 20 --out labels", kShort));
  EXPECT_NE(trained.find("task multilabel: from [2] to 2 numbers"), std::string::npos) << trained;
  EXPECT_NE(trained.find(" examples/s "), std::string::npos) << trained;
  const auto found_at = [&](const char* threshold) {
    return nlohmann::json::parse(run(concat("eval labels --integer --json --threshold ", threshold)));
  };
  const nlohmann::json half = found_at("0.5"), all = found_at("0");
  EXPECT_GT(half["label_accuracy"].get<double>(), 0.85);
  ASSERT_EQ(half["found"].size(), 2u);
  EXPECT_EQ(half["found"][1]["label"], "right");
  double right = 0;
  for (const nlohmann::json& one : half["found"]) {
    const double found = one["true_positives"].get<double>();
    EXPECT_EQ(one["precision"], found / (found + one["false_positives"].get<double>()));
    EXPECT_EQ(one["recall"], found / (found + one["false_negatives"].get<double>()));
    right += found + one["true_negatives"].get<double>();
  }
  EXPECT_NEAR(half["label_accuracy"].get<double>(), right / (2 * half["examples"].get<double>()), 1e-12);
  for (const nlohmann::json& one : all["found"]) EXPECT_EQ(one["recall"], 1.0) << "no probability is below 0";
  testing::expect_text(run("eval labels --threshold 0.5"), {"of at least 0.5", "precision", "right "});
  testing::expect_text(refused("eval labels --by-class"), {"--by-class", "multilabel"});
  testing::expect_text(refused("eval labels --threshold 5"), {"--threshold", "0 to 1"});
  const nlohmann::json one = nlohmann::json::parse(run("predict labels 0 --integer --json"))["examples"][0];
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_EQ(one["probabilities"][k] >= 0.5, one["outputs"][k] >= 0.0) << "a logit of 0 is a half";
  testing::expect_text(run("predict labels 0 --integer"), {"probability"});
}

TEST_F(TasksTest, ARunIsResumedWithItsTask) {
  run(concat("train --dataset sums.csv --target sum --float --epochs 4 --out whole", kShort));
  run(concat("train --dataset sums.csv --target sum --float --epochs 4 --stop-at 17 --out halves", kShort));
  run("train --resume --out halves");
  EXPECT_EQ(testing::bytes_of(place_.path() / "whole/checkpoint.safetensors"),
            testing::bytes_of(place_.path() / "halves/checkpoint.safetensors"));
  EXPECT_EQ(testing::bytes_of(place_.path() / "whole/config.json"),
            testing::bytes_of(place_.path() / "halves/config.json"));
}

TEST_F(TasksTest, AnAutoencoderIsMeasuredByItsAnomalies) {
  std::string rows = "a,b,c,label\n";
  for (int i = 0; i < 240; ++i) {
    const double a = (i * 7 % 31 - 15) / 10.0, b = (i * 11 % 29 - 14) / 10.0;
    // The last of every six rows become test examples.
    const bool odd = i % 12 == 11;
    rows += concat(a, ",", b, ",", a + b + (odd ? 4 : 0), ",", odd ? 1 : 0, "\n");
  }
  place_.write("hums.csv", rows);
  run("train --dataset hums.csv --model autoencoder --width 0.25 --batch-size 10 --threads 1 --epochs 10 --out anomalies");
  const nlohmann::json result = nlohmann::json::parse(run("eval anomalies --integer --json"));
  for (const char* key : {"auc", "partial_auc", "mse"}) EXPECT_TRUE(result.contains(key)) << key;
  const nlohmann::json found = nlohmann::json::parse(run("eval anomalies --integer --json --threshold 1e-9"))["found"];
  EXPECT_EQ(found[0]["label"], "anomaly");
  EXPECT_EQ(found[0]["recall"], 1.0) << "no reconstruction in integers is so near";
  EXPECT_EQ(found[0]["true_negatives"], 0);
  EXPECT_GT(found[0]["false_positives"], 5);
  // Data without classes do not say what is an anomaly.
  place_.write("plain.csv", "a,b,c\n1,2,3\n1,-1,0\n-1,0,-1\n");
  const std::string plain = run("eval anomalies --integer --dataset plain.csv --threshold 1e-9 --json");
  testing::expect_text(plain, {R"("found":3,"true_positives":null,)", R"("precision":null,"recall":null,"f1":null)"});
  const auto examples = result["examples"].get<int>();
  std::string all = "predict anomalies --integer --json";
  for (int i = 0; i < examples; ++i) all += concat(" ", i);
  double errors = 0;
  const nlohmann::json predicted = nlohmann::json::parse(run(all));
  for (const nlohmann::json& one : predicted["examples"]) errors += one["error"].get<double>();
  EXPECT_NEAR(errors / examples, result["mse"].get<double>(), 1e-5) << "the mean of single errors";
}

TEST_F(TasksTest, WhatTheDataDoNotHaveIsRefused) {
  const std::string own = " --dataset sums.csv --target sum --steps 1 --batch-size 10 --out x";
  using testing::mentions;
  const auto line_of = [](std::string text) { return text.substr(0, text.find('\n')); };
  EXPECT_TRUE(mentions(line_of(refused(concat("train --model mlp --task classify", own))), {"no classes"}));
  EXPECT_TRUE(mentions(line_of(refused("train --task regress --steps 1 --out x")), {"synthetic", "no numbers"}));
  EXPECT_TRUE(mentions(line_of(refused("train --task sort --steps 1 --out x")), {"sort", "classify"}));
  EXPECT_TRUE(mentions(line_of(refused(concat("train --model lenet", own))), {"lenet takes pictures", "mlp"}));
  EXPECT_TRUE(mentions(line_of(refused(concat("train --model mlp --augment shift", own))), {"--augment", "pictures"}));
  EXPECT_TRUE(
      mentions(line_of(refused(concat("train --model mlp --label-smoothing 0.1", own))), {"--label-smoothing is"}));
  EXPECT_TRUE(mentions(line_of(refused("train --model mlp --task multilabel --steps 1 --out x")),
                       {"no labels", "--answers targets"}));
  EXPECT_TRUE(
      mentions(line_of(refused(concat("train --model mlp --task multilabel", own))), {"no labels of zeros and ones"}));
  EXPECT_TRUE(mentions(line_of(refused(concat("train --model mlp --class-weights balanced", own))), {"classes"}));
  EXPECT_TRUE(mentions(line_of(refused("train --target sum --steps 1 --out x")), {"--target", "tables of numbers"}));
  EXPECT_TRUE(mentions(line_of(refused(concat("train --model autoencoder --task regress", own))),
                       {"autoencoder: the numbers are [10,2]", "needs [10,1]"}));
  EXPECT_FALSE(fs::exists(place_.path() / "x")) << "a run that cannot begin leaves nothing behind";
  run(concat("train --dataset sums.csv --target sum --epochs 2 --out bits", kShort));
  EXPECT_TRUE(mentions(line_of(refused("eval bits --by-class")), {"--by-class", "regress"}));
  EXPECT_TRUE(mentions(line_of(refused("eval bits --threshold 1")), {"--threshold", "regress"}));
  EXPECT_TRUE(mentions(line_of(refused("export bits --format html --out x.html")), {"pictures", "numbers"}));
}

/// Answers may stand in the training part alone. Without them nothing can be measured.
TEST_F(TasksTest, APartWithoutAnswersIsRefusedBeforeTheFirstStep) {
  const auto error_of = [&](const std::string& line) {
    const std::string text = refused(line);
    return text.substr(0, text.find('\n'));
  };
  for (const auto& [labels, needs] : {std::pair("no yes", "no classes"), {"0.5 1.25", "no numbers to predict"}}) {
    SCOPED_TRACE(labels);
    const std::string text = labels, first = text.substr(0, text.find(' ')), second = text.substr(text.find(' ') + 1);
    std::string train = "a,b,label\n", test = "a,b\n";
    for (int i = 0; i < 24; ++i) {
      train += concat(i / 10.0, ",", i % 5, ",", i < 12 ? first : second, "\n");
      test += concat(i / 10.0, ",", i % 5, "\n");
    }
    place_.write("whole.csv", train);
    fs::create_directories(place_.path() / "parts");
    place_.write("parts/train.csv", train);
    place_.write("parts/test.csv", test);
    EXPECT_TRUE(testing::mentions(error_of(concat("train --dataset ./parts --steps 1 --out x", kShort)),
                                  {"the test part", needs}));
    EXPECT_FALSE(fs::exists(place_.path() / "x")) << "a run that cannot begin leaves nothing behind";
    run(concat("train --dataset whole.csv --inputs numbers --float --epochs 1 --overwrite --out whole", kShort));
    EXPECT_TRUE(
        testing::mentions(error_of("calibrate --run whole --dataset ./parts --out x"), {"the test part", needs}));
  }
}

}  // namespace
}  // namespace miniqat::cli::tasks_test
