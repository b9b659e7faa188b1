// Answers that are no classes, and drawings of examples that are numbers.

#include "training/report/outputs_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/text/json.h"
#include "core/text/page.h"
#include "training/report/example_drawing.h"

namespace miniqat::training::outputs_report_test {
namespace {

/// Examples of a shape, with the numbers 0, 1, 2, ...
datasets::Dataset numbers(std::int64_t count, const Shape& shape) {
  std::vector<std::int64_t> extents = {count};
  extents.insert(extents.end(), shape.extents().begin(), shape.extents().end());
  datasets::Dataset dataset{.name = "numbers", .images = Tensor(Shape(extents)), .classes = 0};
  for (std::int64_t i = 0; i < dataset.images.elements(); ++i) dataset.images.data<float>()[i] = static_cast<float>(i);
  return dataset;
}

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return base64(text);
}

TEST(ExampleDrawing, FewChannelsAreLinesInTheUnitsOfTheData) {
  datasets::Dataset series = numbers(2, {3, 2});
  series.standard = std::make_shared<Standard>(Standard{.mean = {10, 100}, .deviation = {1, 2}});
  const nlohmann::ordered_json drawn = draw_example(series, 1);
  ASSERT_EQ(drawn["lines"].size(), 2u);
  EXPECT_EQ(drawn["lines"][0]["values"], nlohmann::json::parse("[16.0, 18.0, 20.0]"));
  EXPECT_EQ(drawn["lines"][1]["values"], nlohmann::json::parse("[114.0, 118.0, 122.0]"));
  EXPECT_EQ(drawn["lines"][1]["name"], "channel 1");
  EXPECT_EQ(drawn["unit"], "");
  // Features have units of their own.
  datasets::Dataset row = numbers(1, {3});
  row.standard = std::make_shared<Standard>(Standard{.mean = {1, 2, 3}, .deviation = {1, 1, 1}});
  EXPECT_EQ(draw_example(row, 0)["lines"][0]["values"], nlohmann::json::parse("[0.0, 1.0, 2.0]"));
  EXPECT_EQ(draw_example(row, 0)["unit"], "standardised");
}

TEST(ExampleDrawing, ALongLineKeepsItsExtremes) {
  datasets::Dataset sound = numbers(1, {10000, 1});
  sound.images.data<float>()[7777] = -5;
  sound.images.data<float>()[7778] = 50000;
  const auto line = draw_example(sound, 0)["lines"][0]["values"].get<std::vector<double>>();
  EXPECT_EQ(line.size(), 400u);
  EXPECT_EQ(std::ranges::count(line, -5.0), 1);
  EXPECT_EQ(std::ranges::count(line, 50000.0), 1);
}

TEST(ExampleDrawing, ManyChannelsAreAMapWithTheStepsToTheRight) {
  datasets::Dataset bands = numbers(1, {2, 9});
  const std::vector<float> back(18, 8.5f);
  const nlohmann::ordered_json drawn = draw_example(bands, 0, back);
  ASSERT_EQ(drawn["maps"].size(), 2u);
  EXPECT_EQ(drawn["maps"][0]["width"], 2);
  EXPECT_EQ(drawn["maps"][0]["height"], 9);
  // The highest channel on top: 8 and 17, then 7 and 16, down to 0 and 9; 17 is 255.
  const std::string text = bytes({120, 255, 105, 240, 90, 225, 75, 210, 60, 195, 45, 180, 30, 165, 15, 150, 0, 135});
  EXPECT_EQ(drawn["maps"][0]["bytes"], text);
  EXPECT_EQ(drawn["maps"][1]["bytes"].get<std::string>().substr(0, 4), bytes({128, 128, 128}));
  EXPECT_EQ(drawn["low"], 0.0);
  EXPECT_EQ(drawn["high"], 17.0);
}

/// A network that gives these outputs, for the tally of a task.
AnswersOf answers_of(const std::string& name, const Task& task, const datasets::Dataset& examples,
                     const std::vector<std::vector<float>>& outputs) {
  AnswersOf one{name, NetworkAnswers(examples, task)};
  Tally tally(task, std::ssize(outputs.front()));
  datasets::for_each_batch(examples, 1, [&](const datasets::EvaluationBatch& batch) {
    tally.add(outputs[static_cast<std::size_t>(batch.first)], batch, 1);
    one.answers.add(batch.first, outputs[static_cast<std::size_t>(batch.first)]);
  });
  one.answers.evaluation = tally.conclude(examples);
  one.answers.worst = worst_examples(one.answers.evaluation, 2);
  return one;
}

TEST(OutputsReport, NumbersAreBesideTheirTargetsInTheirUnits) {
  datasets::Dataset data = numbers(3, {2});
  data.targets = Tensor::from<float>({3, 1}, {-1, 0, 1});
  data.target_names = {"fat"};
  data.target_standard = std::make_shared<Standard>(Standard{.mean = {20}, .deviation = {10}});
  const std::vector<AnswersOf> answers = {answers_of("float", regression(), data, {{-1}, {0}, {1}}),
                                          answers_of("integers", regression(), data, {{-1}, {0.5}, {-1}})};
  const nlohmann::ordered_json json = outputs_to_json(answers, data, regression());
  const nlohmann::ordered_json& fat = json["outputs"][0];
  EXPECT_EQ(fat["name"], "fat");
  EXPECT_EQ(fat["targets"], nlohmann::json::parse("[10.0, 20.0, 30.0]"));
  EXPECT_EQ(fat["networks"][0]["r2"], 1.0);
  EXPECT_EQ(fat["networks"][1]["predictions"], nlohmann::json::parse("[10.0, 25.0, 10.0]"));
  ASSERT_EQ(json["worst"].size(), 2u);
  EXPECT_EQ(json["worst"][0]["index"], 2);
  EXPECT_EQ(json["worst"][1]["index"], 1);
  EXPECT_EQ(json["worst"][0]["texts"],
            nlohmann::json::parse(R"([["true", "30"], ["float", "30"], ["integers", "10"]])"));
  // A NaN is the worst of all, and no point.
  const std::vector<AnswersOf> broken = {answers_of("float", regression(), data, {{9}, {NAN}, {1}})};
  const nlohmann::ordered_json with_nan = outputs_to_json(broken, data, regression());
  EXPECT_EQ(with_nan["worst"][0]["index"], 1);
  EXPECT_TRUE(with_nan["outputs"][0]["networks"][0]["predictions"][1].is_null());
  EXPECT_TRUE(with_nan["outputs"][0]["networks"][0]["r2"].is_null());
}

TEST(OutputsReport, AnomaliesHaveACurve) {
  datasets::Dataset data = numbers(4, {1});
  data.labels = Tensor::from<std::int32_t>({4}, {0, 1, 0, 1});
  data.classes = 2;
  // Errors of 0, 9, 1 and 1: three of four pairs in order, and a tie.
  const std::vector<AnswersOf> answers = {answers_of("float", reconstruction(), data, {{0}, {4}, {3}, {4}})};
  const nlohmann::ordered_json json = outputs_to_json(answers, data, reconstruction());
  ASSERT_EQ(json["curves"].size(), 1u);
  EXPECT_EQ(json["curves"][0]["auc"], 0.875);
  EXPECT_EQ(json["curves"][0]["points"], nlohmann::json::parse("[[0.0, 0.0], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]]"));
  data.labels = Tensor::from<std::int32_t>({4}, {0, 0, 0, 0});
  EXPECT_EQ(outputs_to_json({answers_of("float", reconstruction(), data, {{0}, {4}, {3}, {4}})}, data,
                            reconstruction())["curves"],
            nlohmann::json::array())
      << "no anomaly";
}

// Probabilities of both are 1 exactly.
TEST(OutputsReport, LabelsAreRankedByTheirLogits) {
  datasets::Dataset data = numbers(2, {1});
  data.targets = Tensor::from<float>({2, 1}, {1, 0});
  data.target_names = {"up"};
  const nlohmann::ordered_json json =
      outputs_to_json({answers_of("float", multilabel(), data, {{60}, {40}})}, data, multilabel());
  EXPECT_EQ(json["labels"][0]["networks"][0]["auc"], 1.0);
  EXPECT_EQ(json["labels"][0]["networks"][0]["precision"], 0.5);
}

TEST(OutputsReport, LabelsHaveARowEach) {
  datasets::Dataset data = numbers(3, {1});
  data.targets = Tensor::from<float>({3, 2}, {1, 0, 1, 0, 0, 0});
  data.target_names = {"up", "down"};
  const std::vector<AnswersOf> answers = {answers_of("float", multilabel(), data, {{3, -1}, {-2, -1}, {1, 2}})};
  const nlohmann::ordered_json json = outputs_to_json(answers, data, multilabel());
  const nlohmann::ordered_json &up = json["labels"][0], &down = json["labels"][1];
  EXPECT_EQ(up["examples"], 2);
  EXPECT_EQ(up["networks"][0]["precision"], 0.5);
  EXPECT_EQ(up["networks"][0]["recall"], 0.5);
  EXPECT_EQ(up["networks"][0]["auc"], 0.5);
  EXPECT_TRUE(down["networks"][0]["recall"].is_null()) << "a share of nothing";
  EXPECT_TRUE(down["networks"][0]["auc"].is_null());
  EXPECT_EQ(json["worst"][0]["index"], 2);
  EXPECT_EQ(json["worst"][0]["texts"], nlohmann::json::parse(R"([["true", "none"], ["float", "up, down"]])"));
}

}  // namespace
}  // namespace miniqat::training::outputs_report_test
