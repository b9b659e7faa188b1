// What networks learn: tasks by hand-made numbers, and each from its first step to its integers.

#include "training/task/task.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include "core/graph/graph_json.h"
#include "core/tensors/random.h"
#include "models/blocks.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/quantize/eval_net.h"
#include "tests/training/run_fixture.h"
#include "training/evaluate/evaluator.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"
#include "training/verify/verifier.h"

namespace miniqat::training::task_test {
namespace {

Tensor floats(const Shape& shape, const std::vector<float>& values) { return Tensor::from<float>(shape, values); }

/// `outputs` of the examples of a batch.
Evaluation concluded(const Task& task, const std::vector<float>& outputs, const datasets::Examples& batch,
                     const datasets::Dataset& data = {.name = "numbers"}) {
  const std::int64_t examples = batch.images.defined() ? batch.images.shape()[0] : batch.targets.shape()[0];
  Tally tally(task, std::ssize(outputs) / examples);
  tally.add(outputs, batch, examples);
  EXPECT_EQ(tally.examples(), examples);
  return tally.conclude(data);
}

TEST(Regression, MeasuresAreInTheUnitsOfTheData) {
  // Errors 0, 0, 1 and 2, 0, -2; the second number has the deviation 10.
  const datasets::Examples batch{.targets = floats({3, 2}, {1, 0, 2, 0, 3, 3})};
  const datasets::Standard units{.mean = {5, 50}, .deviation = {1, 10}};
  datasets::Dataset data{.name = "two numbers", .targets = batch.targets};
  data.target_standard = std::make_shared<const datasets::Standard>(units);
  const Evaluation result = concluded(regression(), {1, 2, 2, 0, 4, 1}, batch, data);
  EXPECT_DOUBLE_EQ(*result.find("r2"), ((1 - 1.0 / 2) + (1 - 8.0 / 6)) / 2);
  EXPECT_DOUBLE_EQ(*result.find("mae"), (1.0 / 3 + 10 * 4.0 / 3) / 2);
  EXPECT_DOUBLE_EQ(*result.find("mse"), (1.0 / 3 + 100 * 8.0 / 3) / 2);
  EXPECT_DOUBLE_EQ(result.loss, (1.0 / 3 + 8.0 / 3) / 2) << "in the units of the targets, as it was trained";
  EXPECT_EQ(result.text(true), "R^2 0.08333") << "not the mean over two units";
  ASSERT_EQ(result.by_target.size(), 2u);
  EXPECT_DOUBLE_EQ(*result.by_target[0].r2, 1 - 1.0 / 2);
  EXPECT_DOUBLE_EQ(result.by_target[0].mean_absolute, 1.0 / 3);
  EXPECT_DOUBLE_EQ(*result.by_target[1].r2, 1 - 8.0 / 6);
  EXPECT_DOUBLE_EQ(result.by_target[1].mean_absolute, 10 * 4.0 / 3);
  EXPECT_DOUBLE_EQ(result.by_target[1].mean_squared, 100 * 8.0 / 3);
}

TEST(Regression, ConstantTargetsHaveNoSquaredCorrelationAndANaNHasNoMeasures) {
  const datasets::Examples batch{.targets = floats({2, 1}, {3, 3})};
  EXPECT_FALSE(concluded(regression(), {3, 4}, batch).find("r2"));
  const Evaluation broken = concluded(regression(), {3, NAN}, batch);
  EXPECT_TRUE(std::isnan(broken.loss));
  EXPECT_TRUE(std::isnan(*broken.find("mae")));
}

TEST(Reconstruction, ErrorsOfExamplesTellAnomaliesFromTheRest) {
  datasets::Examples batch{.images = floats({4, 2}, {1, 1, 2, 2, 3, 3, 4, 4}),
                           .labels = Tensor::from<std::int32_t>({4}, std::vector{0, 0, 1, 2})};
  // Errors 1, 4, 2.25 and 9: one of two anomalies is above both normal ones, the other above one.
  const std::vector<float> outputs = {2, 0, 4, 0, 1.5, 4.5, 7, 1};
  const Evaluation result = concluded(reconstruction(), outputs, batch);
  EXPECT_DOUBLE_EQ(*result.find("auc"), 0.75);
  EXPECT_DOUBLE_EQ(result.loss, 16.25 / 4);
  batch.labels = {};
  const Evaluation unlabelled = concluded(reconstruction(), outputs, batch);
  EXPECT_FALSE(unlabelled.find("auc"));
  EXPECT_DOUBLE_EQ(*unlabelled.find("mse"), 16.25 / 4);
  ASSERT_EQ(unlabelled.findings.size(), 1u);
  EXPECT_EQ(unlabelled.findings[0].scores.size(), 4u);
  EXPECT_TRUE(unlabelled.findings[0].labels.empty()) << "nobody knows the anomalies";
}

TEST(Reconstruction, TheScoreOfARecordingIsTheMeanOfItsWindows) {
  const auto integers = [](const Shape& shape, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(shape, values);
  };
  // Errors 1 and 9 of the first, 4 of the second, 6.25 and 2.25 of the third, an anomaly; 9 of the fourth, another.
  const datasets::Examples batch{.images = floats({6, 1}, {0, 0, 0, 0, 0, 0}),
                                 .labels = integers({6}, {0, 0, 0, 1, 1, 3}),
                                 .targets = {},
                                 .recordings = integers({6, 2}, {0, 0, 0, 1, 2, 0, 5, 0, 5, 1, 7, 0})};
  const Evaluation result = concluded(reconstruction(), {1, 3, 2, 2.5, 1.5, 3}, batch);
  EXPECT_DOUBLE_EQ(*result.find("auc"), 0.75) << "means 5, 4 and 4.25, 9; of windows it would be 0.72";
  EXPECT_DOUBLE_EQ(result.loss, 31.5 / 6);
  EXPECT_EQ(result.text(true).substr(0, 24), "AUC 0.75 (4 recordings),");
}

TEST(Reconstruction, PicturesAreTheNumbersOfTheirBytes) {
  const datasets::Examples batch{
      .images = {Tensor::from<std::uint8_t>({1, 1, 2, 1}, std::vector<std::uint8_t>{10, 30}), {0.5f, 10}}};
  EXPECT_DOUBLE_EQ(concluded(reconstruction(), {0, 9}, batch).loss, 0.5);
}

TEST(Reconstruction, TheInputIsTheTargetAsItWasBeforeItsQuantizer) {
  for (const Shape& shape : {Shape{4, 6}, Shape{4, 3, 2}}) {
    Graph graph;
    const Output x = layers::placeholder(graph, "inputs", shape);
    const Output y = models::dense(graph, "fc", models::flatten(graph, "flat", x), 6);
    graph.set_outputs({y});
    const TrainingEnds ends = reconstruction().add_loss(graph, x, y, {});
    EXPECT_EQ(ends.labels.node, nullptr);
    quantize::create_training_graph(graph, {.quantize_input = true});
    const Node* target = ends.loss.node->input(1).node;
    if (shape.rank() > 2) target = target->input(0).node;
    EXPECT_EQ(target, x.node) << shape;
    const Node* read = graph.at("fc/MatMul").input(0).node;
    if (!quantize::is_quantizer(*read)) read = read->input(0).node;
    EXPECT_TRUE(quantize::is_quantizer(*read)) << shape << " " << read->name();
  }
}

TEST(Multilabel, EachLabelIsAnAnswerOfItsOwn) {
  const datasets::Examples batch{.targets = floats({2, 2}, {1, 0, 1, 1})};
  const Evaluation result = concluded(multilabel(), {2, 3, -1, 1000}, batch);
  EXPECT_DOUBLE_EQ(*result.find("label_accuracy"), 0.5);
  // One of two found without a false alarm; one found with one.
  EXPECT_DOUBLE_EQ(*result.find("f1"), (2.0 / 3 + 2.0 / 3) / 2);
  EXPECT_NEAR((result.losses[0] + result.losses[1]) / 2, result.loss, 1e-12);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_NEAR(result.findings[0].scores[1], 1 / (1 + std::exp(1)), 1e-12) << "a probability";
  EXPECT_EQ(concluded(multilabel(), {0, 3, -1, 1000}, batch).find("f1"), result.find("f1")) << "0 is found";
  EXPECT_NEAR(result.loss, (std::log1p(std::exp(-2)) + 3 + std::log1p(std::exp(-3)) + 1 + std::log1p(std::exp(-1))) / 4,
              1e-12);
}

TEST(Multilabel, ANanIsNoRightAnswer) {
  const datasets::Examples batch{.targets = floats({2, 2}, {1, 0, 1, 0})};
  const Evaluation result = concluded(multilabel(), {2, NAN, NAN, -1}, batch);
  EXPECT_DOUBLE_EQ(*result.find("label_accuracy"), 0.5);
  EXPECT_EQ(result.measures[0].detail, "2 of 4");
  EXPECT_DOUBLE_EQ(*result.find("f1"), 2.0 / 3) << "one of two found";
}

TEST(Tasks, AreWhatTheDataHave) {
  datasets::Dataset data{.name = "data", .images = floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(&task_for(data), &reconstruction());
  data.targets = floats({2, 1}, {0, 1});
  EXPECT_EQ(&task_for(data), &multilabel());
  data.targets = floats({2, 1}, {0, 1.5});
  EXPECT_EQ(&task_for(data), &regression());
  data.labels = Tensor(Shape{2}, DType::kInt32);
  EXPECT_EQ(&task_for(data), &classification());
  data.recordings = Tensor(Shape{2, 2}, DType::kInt32);
  EXPECT_EQ(&task_for(data), &reconstruction()) << "normal recordings only";
  data.labels.data<std::int32_t>()[1] = 1;
  EXPECT_EQ(&task_for(data), &classification());
}

TEST(Tasks, AreFoundByNameAndRefuseDataOfAnotherKind) {
  for (const Task* task : tasks()) EXPECT_EQ(&find_task(task->name), task);
  EXPECT_TRUE(testing::mentions(testing::error_of([] { find_task("regression"); }), {"regression", "regress"}));
  const datasets::Dataset data{.name = "plain", .images = floats({1, 2}, {1, 2})};
  for (const Task* task : {&classification(), &regression(), &multilabel()})
    EXPECT_TRUE(testing::mentions(testing::error_of([&] { task->outputs_for(data); }), {"plain has no"})) << task->name;
}

/// Four numbers, of which the last two are made of the first two, and what a task wants of them.
struct Numbers {
  const char* task;
  /// What becomes of an example's numbers: targets, or labels.
  std::function<void(const std::array<float, 4>&, std::int64_t, datasets::Dataset&)> answer;
  std::int64_t outputs;
  /// At the end of a training in float and at 8 bits.
  const char* measure;
  double least;
};

/// Anomalies are for tests only.
datasets::Dataset numbers(const Numbers& what, std::int64_t n, std::uint64_t seed, bool has_anomalies) {
  datasets::Dataset data{.name = "numbers", .images = Tensor(Shape{n, 4}), .classes = 2};
  const std::string task = what.task;
  if (task == "reconstruct" || task == "classify") data.labels = Tensor(Shape{n}, DType::kInt32);
  if (task == "regress" || task == "multilabel") data.targets = Tensor(Shape{n, what.outputs});
  Random random(seed);
  for (std::int64_t i = 0; i < n; ++i) {
    std::array<float, 4> x = {random.normal(), random.normal(), 0, 0};
    x[2] = x[0] + x[1];
    x[3] = x[0] - x[1];
    what.answer(x, i, data);
    // An anomaly does not keep to that.
    if (task == "reconstruct" && has_anomalies && i % 4 == 3) {
      data.labels.data<std::int32_t>()[i] = 1;
      x[2] += 3;
    }
    std::ranges::copy(x, data.images.data<float>() + 4 * i);
  }
  return data;
}

class TaskTest : public RunFixture, public ::testing::WithParamInterface<Numbers> {
 protected:
  TrainSettings on_numbers(const std::shared_ptr<const datasets::Splits>& data) const {
    layers::register_ops();
    Graph graph;
    const Output x = layers::placeholder(graph, "inputs", {16, 4});
    const Output hidden = models::dense_relu(graph, "fc1", x, 16);
    graph.set_outputs({models::dense(graph, "fc2", hidden, GetParam().outputs)});
    write_graph(path("net.json"), graph);
    TrainSettings wanted = settings();
    wanted.model = path("net.json").string();
    wanted.dataset = path("numbers").string();
    wanted.data_dir = "";
    wanted.data = data;
    wanted.task = GetParam().task;
    wanted.batch_size = 16;
    wanted.steps = 400;
    wanted.learning_rate = 0.05;
    return wanted;
  }

  double measured(const Evaluation& evaluation) const { return evaluation.find(GetParam().measure).value_or(-1); }
};

TEST_P(TaskTest, IsLearnedInFloatAndAtEightBitsAndBecomesIntegers) {
  const auto data = std::make_shared<datasets::Splits>();
  data->train = numbers(GetParam(), 256, 1, false);
  data->test = numbers(GetParam(), 100, 2, true);
  RunObserver silent;
  TrainSettings wanted = on_numbers(data);
  wanted.float_only = true;
  const testing::RunFiles in_float = train_new("float", wanted, silent);
  const std::string key = concat("test_", GetParam().measure);
  EXPECT_GE(in_float.summary[key].get<double>(), GetParam().least);
  EXPECT_EQ(in_float.summary["task"], GetParam().task);
  EXPECT_EQ(testing::json_of(path("float/config.json"))["task"], GetParam().task);

  wanted.float_only = false;
  wanted.init_checkpoint = path("float").string();
  wanted.steps = 100;
  const testing::RunFiles in_bits = train_new("bits", wanted, silent);
  EXPECT_GE(in_bits.summary[key].get<double>(), GetParam().least);

  const RunSource run = open_run(path("bits").string(), "");
  const std::string name = GetParam().task;
  const Task& task = find_task(name);
  EvaluationSession simulation(run, data->test);
  const Evaluation simulated = evaluate(simulation.session, simulation.classifier, data->test);
  EXPECT_NEAR(measured(simulated), in_bits.summary[key].get<double>(), 1e-6);
  const integer::Model model = convert_run(run.directory, run.checkpoint, grid_of(data->test));
  EXPECT_EQ(model.tensor(model.input).grid.bits, 8);
  const Evaluation in_integers = evaluate_integers(model, task, data->test);
  EXPECT_NEAR(measured(in_integers), measured(simulated), 0.01);
  const Verification verified = verify(simulation.session, simulation.classifier, model, data->test);
  EXPECT_TRUE(verified.reference_equal);
  EXPECT_EQ(verified.integer.examples, 100);
  EXPECT_GE(verified.simulated.outputs.share(), 0.9);
}

/// A Softmax does not change which class has the largest number.
TEST(TaskIntegers, OnlyClassesDoWithoutTheirSoftmax) {
  testing::EvalNet net;
  const Output y = net.quantizer("logits", net.conv("a", net.images()), {-9, 9});
  net.graph.set_outputs({layers::softmax(net.graph, "probabilities", y)});
  for (const Task* task : tasks()) {
    const std::string why = why_no_integers(net.graph, *task, net.variables, net.input);
    const bool refuses = testing::mentions(why, {"[Softmax \"probabilities\"]", "integers have no Softmax"});
    EXPECT_EQ(refuses, task != &classification()) << task->name << ": " << why;
    EXPECT_EQ(why.empty(), task == &classification()) << task->name << ": " << why;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TaskTest,
                         ::testing::Values(Numbers{.task = "classify",
                                                   .answer =
                                                       [](const auto& x, std::int64_t i, auto& data) {
                                                         data.labels.template data<std::int32_t>()[i] = x[2] > 0;
                                                       },
                                                   .outputs = 2,
                                                   .measure = "accuracy",
                                                   .least = 0.9},
                                           Numbers{.task = "regress",
                                                   .answer =
                                                       [](const auto& x, std::int64_t i, auto& data) {
                                                         data.targets.template data<float>()[2 * i] = x[0] * x[1];
                                                         data.targets.template data<float>()[2 * i + 1] = x[2];
                                                       },
                                                   .outputs = 2,
                                                   .measure = "r2",
                                                   .least = 0.7},
                                           Numbers{.task = "multilabel",
                                                   .answer =
                                                       [](const auto& x, std::int64_t i, auto& data) {
                                                         for (int k = 0; k < 3; ++k)
                                                           data.targets.template data<float>()[3 * i + k] =
                                                               x[static_cast<std::size_t>(k)] > 0;
                                                       },
                                                   .outputs = 3,
                                                   .measure = "label_accuracy",
                                                   .least = 0.9},
                                           Numbers{.task = "reconstruct",
                                                   .answer = [](const auto&, std::int64_t, auto&) {},
                                                   .outputs = 4,
                                                   .measure = "auc",
                                                   .least = 0.8}),
                         [](const auto& info) { return std::string(info.param.task); });

}  // namespace
}  // namespace miniqat::training::task_test
