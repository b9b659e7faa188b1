// What a run says of single pictures and of its ranges: `eval --by-class` and `--wrong`, `predict`, `run RUN`, `inspect
// RUN`, metrics.jsonl.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "training/evaluate/evaluator.h"

namespace miniqat::testing::answers_test {
namespace {

using Json = nlohmann::json;

constexpr int kPictures = 230;

/// Two runs that make mistakes: "float" and, with quantization, "run".
class AnswersTest : public SharedPlaceTest<AnswersTest> {
 public:
  static void make() {
    write_tiny_digits(*place_, "digits", 64, kPictures);
    place_->write("tiny.json", tiny_classifier());
    const auto train = [](const Arguments& more) {
      const Arguments line =
          "train --model tiny.json --dataset mnist --data-dir digits --steps 60 --threads 1 --validation 8 "
          "--validation-method stride" +
          more;
      expect_success(program(line));
    };
    train({"--float", "--out", "float"});
    train({"--weight-bits", "4", "--activation-bits", "4", "--ranges", "observed", "--out", "run"});
  }

 protected:
  static Json json(Arguments line) {
    line.insert(line.end(), {"--json", "--threads", "1"});
    return Json::parse(expect_success(program(line)).out);
  }
};

TEST_F(AnswersTest, EvalAndPredictSayTheSame) {
  Arguments all;
  for (int i = 0; i < kPictures; ++i) all.push_back(std::to_string(i));
  for (const Arguments& how : std::vector<Arguments>{{"float"}, {"run"}, {"run", "--integer"}}) {
    SCOPED_TRACE(::testing::PrintToString(how));
    const Json evaluated = json("eval --by-class --wrong" + how), asked = json("predict" + how + all);
    EXPECT_EQ(asked["integer"], how.size() > 1);
    ASSERT_EQ(asked["pictures"].size(), kPictures);
    Json wrong = Json::array(), confusion = Json(std::vector(10, std::vector(10, 0)));
    for (int i = 0; i < kPictures; ++i) {
      const Json& one = asked["pictures"][i];
      const int label = one["label"], predicted = one["predicted"];
      EXPECT_EQ(one["picture"], Json(i));
      EXPECT_EQ(one["class"], std::to_string(predicted));
      EXPECT_EQ(one["score"], one["scores"][predicted]);
      double sum = 0;
      for (const Json& score : one["scores"]) sum += score.get<double>();
      EXPECT_NEAR(sum, 1, 1e-9);
      confusion[label][predicted] = confusion[label][predicted].get<int>() + 1;
      if (label != predicted)
        wrong.push_back({{"index", i}, {"label", label}, {"predicted", predicted}, {"score", one["score"]}});
    }
    EXPECT_GT(wrong.size(), 0u) << "a test without mistakes tests little";
    EXPECT_EQ(evaluated["wrong"], wrong);
    EXPECT_EQ(evaluated["confusion"], confusion);
    EXPECT_EQ(evaluated["examples"].get<int>() - evaluated["correct"].get<int>(), static_cast<int>(wrong.size()));
    EXPECT_EQ(evaluated["classes"].size(), 10u);
  }
}

TEST_F(AnswersTest, EvalShowsThemInTables) {
  const Outcome both = expect_success(program("eval run --by-class --wrong --threads 1"));
  expect_text(both.out, {" W4A4 on mnist (test): accuracy ", "\nlabel  accuracy  pictures   0", " wrong pictures\n",
                         "\nindex  label  predicted   score\n"});
  const Json plain = json({"eval", "run"});
  for (const char* key : {"classes", "confusion", "wrong"}) EXPECT_FALSE(plain.contains(key)) << key;
  expect_success(program("export run --out run.miniqat"));
  const Json of_run = json({"eval", "run", "--integer", "--by-class", "--wrong"}),
             of_file = json({"eval", "--model", "run.miniqat", "--dataset", "mnist", "--data-dir", "digits",
                             "--by-class", "--wrong"});
  for (const char* key : {"classes", "confusion", "wrong"}) EXPECT_EQ(of_file[key], of_run[key]) << key;
}

TEST_F(AnswersTest, PredictPrintsALineForEachPicture) {
  const Outcome outcome = expect_success(program("predict run 7 0 7 --threads 1 --top 2"));
  const std::string head = "picture  label  class  score   next\n";
  ASSERT_TRUE(outcome.out.starts_with(head)) << outcome.out;
  const Json asked = json({"predict", "--run", "run", "7"})["pictures"];
  ASSERT_EQ(asked.size(), 1u) << "behind --run all words are pictures";
  const std::string line =
      concat("7        ", asked[0]["label"].get<int>(), "      ", asked[0]["predicted"].get<int>());
  EXPECT_TRUE(outcome.out.substr(head.size()).starts_with(line)) << outcome.out;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 4);
  EXPECT_EQ(std::ranges::count(outcome.out, '%'), 6) << "the class and one more";
  EXPECT_EQ(json({"predict", "run", "7", "--split", "train"})["split"], "train");
  EXPECT_EQ(json({"predict", "run", "7", "--split", "validation"})["pictures"].size(), 1u);
}

TEST_F(AnswersTest, RunTakesARunAndPicturesOfADataSet) {
  const auto compute = [](Arguments line) {
    line.insert(line.begin(), "run");
    line.insert(line.end(), {"--threads", "1", "--out", "out.safetensors"});
    // A note on pictures that are repeated is no failure.
    EXPECT_EQ(program(line).status, 0);
    return read_safetensors(path("out.safetensors")).tensors;
  };
  const auto scores_of = [](const Tensor& logits, std::int64_t row) {
    return training::class_scores(logits.values<float>().subspan(row * 10, 10));
  };
  const auto bytes_of_logits = [](const NamedTensors& tensors) {
    EXPECT_EQ(tensors.size(), 1u);
    return Json(tensors.begin()->second.values<float>()).dump();
  };
  const Json asked = json({"predict", "run", "227", "228", "229"})["pictures"];
  const Tensor logits = compute({"run", "--index", "227"}).begin()->second;
  ASSERT_EQ(logits.shape(), (Shape{4, 10}));
  for (int row = 0; row < 4; ++row)
    EXPECT_EQ(Json(scores_of(logits, row)), asked[std::min(row, 2)]["scores"]) << "the last picture is repeated";
  const Outcome noted = program("run run --index 228 --threads 1 --out out.safetensors");
  EXPECT_EQ(noted.status, 0);
  EXPECT_EQ(noted.err, "note: 2 pictures up to the end of the data; the rest of the batch of 4 repeats the last one\n");
  EXPECT_TRUE(noted.out.starts_with("wrote out.safetensors: ")) << noted.out;
  expect_text(noted.out, {" [4,10]\n"});
  EXPECT_EQ(program("run run --index 226 --threads 1 --out out.safetensors").err, "");
  const Arguments graph = "--graph run/eval_graph.json --checkpoint run --index 227 --dataset mnist --data-dir digits";
  EXPECT_EQ(bytes_of_logits(compute(graph)), bytes_of_logits(compute({"run", "--index", "227"})))
      << "the graph's outputs";
  Arguments fetched = graph;
  fetched.insert(fetched.end(), {"--fetch", "images"});
  EXPECT_EQ(compute(fetched).at("images").shape(), (Shape{4, 8, 8, 1}));
  const NamedTensors trained =
      compute({"run", "--index", "0", "--train", "--split", "train", "--fetch", "loss,labels"});
  EXPECT_GT(trained.at("loss").values<float>()[0], 0);
  const Json first = json({"predict", "run", "0", "1", "2", "3", "--split", "train"})["pictures"];
  for (int row = 0; row < 4; ++row)
    EXPECT_EQ(trained.at("labels").values<std::int32_t>()[row], first[row]["label"].get<int>());
}

TEST_F(AnswersTest, RunRefusesPicturesThatDoNotFit) {
  write_tiny_digits(*place_, "large", 8, 8, 9);
  expect_error(program("run --graph tiny.json --index 0 --dataset mnist --data-dir large --fetch pool1 --out never"), 1,
               {"tiny.json: the input is [4,8,8,1]", "[9,9,1]"});
}

TEST_F(AnswersTest, InspectShowsTheGridsThatAreExported) {
  const Outcome shown = expect_success(program("inspect run"));
  expect_text(shown.out, {"\nquantizer "});
  expect_success(program("export run --out run.json"));
  int checked = 0;
  const Json exported = Json::parse(bytes_of(path("run.json")));
  for (const Json& tensor : exported["tensors"]) {
    std::istringstream lines(shown.out.substr(shown.out.find("\nquantizer ") + 1));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(tensor["name"].get<std::string>() + " ")) continue;
      char grid[64];
      std::snprintf(grid, sizeof grid, "  %.6g ", tensor["scale"].get<double>());
      EXPECT_NE(line.find(grid), std::string::npos) << line << " has not " << grid;
      EXPECT_TRUE(line.ends_with(concat(" ", tensor["zero_point"].get<int>()))) << line << "\n" << tensor;
      ++checked;
    }
  }
  EXPECT_GE(checked, 2);
  EXPECT_EQ(program("inspect float").out.find("\nquantizer "), std::string::npos);
  EXPECT_EQ(program("inspect run/train_graph.json").out.find("\nquantizer "), std::string::npos);
}

/// The last line about an accuracy has the ranges of the checkpoint, which is of the same step.
TEST_F(AnswersTest, MetricsHoldTheRanges) {
  std::istringstream lines(bytes_of(path("run/metrics.jsonl")));
  Json last;
  int epochs = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    const bool is_early = json.contains("loss") && json["step"] <= 20;
    EXPECT_TRUE(json.contains("ranges") || !(is_early || json.contains("validation_accuracy"))) << line;
    if (!json.contains("validation_accuracy")) continue;
    ++epochs;
    last = json["ranges"];
  }
  EXPECT_GT(epochs, 1);
  const NamedTensors variables = read_safetensors(path("run/checkpoint.safetensors")).tensors;
  EXPECT_GE(last.size(), 4u);
  for (const auto& [quantizer, range] : last.items()) {
    EXPECT_EQ(range[0].get<float>(), variables.at(quantizer + "/min").values<float>()[0]) << quantizer;
    EXPECT_EQ(range[1].get<float>(), variables.at(quantizer + "/max").values<float>()[0]) << quantizer;
  }
  EXPECT_EQ(bytes_of(path("float/metrics.jsonl")).find("ranges"), std::string::npos);
}

TEST_F(AnswersTest, PredictRefusesWhatIsNoPicture) {
  const auto refuses = [](const Arguments& words, int status, const std::vector<std::string>& parts) {
    expect_error(program("predict" + words), status, parts);
  };
  refuses("run 8 --split validation", 2, {"only 0 to 7"});
  refuses("nowhere 1", 1, {"nowhere holds no run"});
  expect_success(program("export run --out refused.miniqat"));
  refuses("refused.miniqat 1", 1, {"refused.miniqat is a file, not the directory of a run", "--model"});
  expect_error(program("eval refused.miniqat"), 1, {"takes such a model as --model"});
  place_->write("net.onnx", "");
  expect_error(
      program("eval net.onnx"), 1,
      {"an ONNX model goes with --model (train, quantize, calibrate, sensitivity), or alone (import, inspect)"});
  refuses("float 1 --integer", 1, {"float network"});
  write_tiny_digits(*place_, "large", 8, 8, 9);
  refuses("run 1 --data-dir large", 1, {"[4,8,8,1]", "[9,9,1]"});
}

}  // namespace
}  // namespace miniqat::testing::answers_test
