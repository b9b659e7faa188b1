#include "training/model_source.h"

#include <gtest/gtest.h>

#include "core/engine/session.h"
#include "core/graph/graph_json.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "quantize/convert/convert.h"
#include "quantize/quantize.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"
#include "tests/importers/onnx/node_chain.h"
#include "tests/temp_dir.h"

namespace miniqat::training::model_source_test {
namespace {

datasets::Dataset noise(std::int64_t side, std::int64_t channels) {
  datasets::Dataset data{.name = "noise",
                         .images = Tensor(Shape{4, side, side, channels}, DType::kUInt8),
                         .labels = Tensor(Shape{4}, DType::kInt32),
                         .classes = 10};
  Random random(1);
  for (std::uint8_t& byte : data.images.values<std::uint8_t>()) byte = static_cast<std::uint8_t>(random.below(256));
  for (int i = 0; i < 4; ++i) data.labels.data<std::int32_t>()[i] = i;
  return data;
}

struct Case {
  const char* model;
  std::int64_t side;
  quantize::BnFold fold;
};

/// The evaluation graph out of the training graph computes what one out of the float graph does.
TEST(ModelSource, TheEvaluationGraphComesOutOfTheTrainingGraph) {
  layers::register_ops();
  quantize::register_ops();
  set_thread_count(1);
  for (const Case& c : {Case{"lenet5", 28, quantize::BnFold::kTf}, Case{"mobilenet_v1", 32, quantize::BnFold::kTf},
                        Case{"mobilenet_v1", 32, quantize::BnFold::kSingle}}) {
    SCOPED_TRACE(c.model);
    const datasets::Dataset data = noise(c.side, c.side == 28 ? 1 : 3);
    Classifier net = make_classifier({.model = c.model, .width = 0.25, .batch_size = 4}, data);
    Graph from_float = net.graph.clone();
    const auto [labels, loss] = add_loss(net);
    const quantize::RewriteOptions options = {.weight_bits = 4, .bn_fold = c.fold, .ema_decay = 0.5};
    quantize::create_training_graph(net.graph, options);
    quantize::create_eval_graph(from_float, options);
    Session session(net.graph, {.seed = 3});
    const optim::Sgd optimizer({.learning_rate = 0.01});
    Tensor pictures(net.images.shape());
    Random random(2);
    for (float& pixel : pictures.values<float>()) pixel = random.uniform();
    for (int step = 0; step < 3; ++step)
      session.train_step(loss, optimizer, {{net.images, pictures}, {labels, data.labels}});

    Classifier evaluation = evaluation_of(net);
    EXPECT_EQ(graph_to_json(evaluation.graph), graph_to_json(from_float));
    Session one(evaluation.graph), other(from_float);
    for (Session* copy : {&one, &other}) copy->restore(session.checkpoint(), Session::Restore::kVariables, "test");
    const Tensor logits = one.run({.fetches = {evaluation.logits}}, {{evaluation.images, pictures}}).fetched.front();
    const Output expected = from_float.outputs().front();
    const Tensor wanted =
        other.run({.fetches = {expected}}, {{from_float.at("images").output(), pictures}}).fetched.front();
    EXPECT_EQ(evaluation.logits.name(), expected.name());
    EXPECT_TRUE(std::ranges::equal(logits.values<float>(), wanted.values<float>()));
    EXPECT_NO_THROW(quantize::convert(evaluation.graph, one.variables()));
  }
}

std::string end_of(const std::string& file, const Task& task, const std::string& copy = {}) {
  datasets::Dataset data = noise(2, 1);
  data.targets = Tensor(Shape{4, 10});
  const Classifier net = make_classifier({.model = file, .model_graph = copy, .batch_size = 4, .task = &task}, data);
  EXPECT_EQ(net.logits, net.graph.outputs().front());
  return concat(net.logits.name(), net.notes.empty() ? "" : ", " + net.notes.front().substr(0, 29));
}

TEST(ModelSource, WhatTheLossHasIsLeftOutAtTheEnd) {
  const testing::TempDir place;
  const auto file = [&](const std::string& nodes, const std::string& output) {
    return place
        .write(output + ".json", R"({"format": "miniqat.graph", "version": 2, "nodes": [
      {"name": "x", "op": "Placeholder", "attrs": {"shape": [4, 2, 2, 1]}},
      {"name": "rows", "op": "Reshape", "inputs": ["x"], "attrs": {"shape": [4, 4]}},
      {"name": "w", "op": "Variable", "attrs": {"shape": [4, 10]}},
      {"name": "y", "op": "MatMul", "inputs": ["rows", "w"]},)" +
                                     nodes + R"(], "outputs": [")" + output + R"("]})")
        .string();
  };
  const std::string sigmoid = file(R"({"name": "s", "op": "Sigmoid", "inputs": ["y"]})", "s");
  EXPECT_EQ(end_of(sigmoid, multilabel()), "y, the final Sigmoid \"s\" is left");
  EXPECT_EQ(end_of(sigmoid, classification()), "s");
  EXPECT_EQ(end_of(sigmoid, regression()), "s");
  EXPECT_EQ(end_of(sigmoid, multilabel(), sigmoid), "s") << "a run has the network as it was trained";
  const std::string softmax = file(R"({"name": "s", "op": "Softmax", "inputs": ["y"]},
      {"name": "end", "op": "Reshape", "inputs": ["s"], "attrs": {"shape": [-1, 10]}})",
                                   "end");
  EXPECT_EQ(end_of(softmax, classification()), "end, the final Softmax \"s\" is left");
  EXPECT_EQ(end_of(softmax, multilabel()), "end");
  const std::string pairs = file(R"({"name": "a", "op": "Reshape", "inputs": ["y"], "attrs": {"shape": [4, 5, 2]}},
      {"name": "s", "op": "Softmax", "inputs": ["a"]},
      {"name": "of-pairs", "op": "Reshape", "inputs": ["s"], "attrs": {"shape": [4, 10]}})",
                                 "of-pairs");
  EXPECT_EQ(end_of(pairs, classification()), "of-pairs");
}

/// An ONNX model of ten numbers for each example.
struct OnnxRows {
  explicit OnnxRows(const std::string& end) {
    net.constant("w", {4, 10});
    net.add("Flatten");
    net.add("Gemm", {"w"});
    net.add(end);
    net.write();
  }
  std::string file() const { return net.path().string(); }
  importers::import_test::NodeChain net{{0, 1, 2, 2}};
};

TEST(ModelSource, OnlyTheLossOfClassesHasTheSoftmaxOfAnOnnxFile) {
  const OnnxRows softmax("Softmax");
  EXPECT_EQ(end_of(softmax.file(), classification()), "the_Gemm/MatMul, the final Softmax \"the_Softma");
  for (const Task* task : {&regression(), &multilabel()})
    EXPECT_EQ(end_of(softmax.file(), *task), "the_Softmax/Softmax, the final Softmax \"the_Softma");
  // Runs for another batch, of which one was begun when no task had the Softmax.
  const testing::TempDir place;
  const auto copy = [&](const std::string& name, const std::string& output) {
    return place
        .write(name, R"({"format": "miniqat.graph", "version": 2, "nodes": [
      {"name": "x", "op": "Placeholder", "attrs": {"shape": [2, 2, 2, 1]}},
      {"name": "rows", "op": "Reshape", "inputs": ["x"], "attrs": {"shape": [2, 4]}},
      {"name": "w", "op": "Variable", "attrs": {"shape": [4, 10]}},
      {"name": "y", "op": "MatMul", "inputs": ["rows", "w"]},
      {"name": "s", "op": "Softmax", "inputs": ["y"]}], "outputs": [")" +
                         output + R"("]})")
        .string();
  };
  EXPECT_EQ(end_of(softmax.file(), regression(), copy("old.json", "y")), "the_Gemm/MatMul");
  EXPECT_EQ(end_of(softmax.file(), regression(), copy("new.json", "s")), "the_Softmax/Softmax");

  const OnnxRows logarithms("LogSoftmax");
  EXPECT_EQ(end_of(logarithms.file(), classification()), "the_Gemm/MatMul, the final LogSoftmax \"the_Log");
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { end_of(logarithms.file(), regression()); }),
                                {"[LogSoftmax \"the_LogSoftmax\"]", "a network for classes"}));
  // The data are still to say the task.
  const ClassifierOptions open = {.model = logarithms.file(), .batch_size = 4};
  EXPECT_EQ(testing::error_of([&] { require_pictures_fit(open, Shape{2, 2, 1}, "noise"); }), "");
}

/// A picture that is its own target, in rows, and a second placeholder of pictures that only a loss reads.
struct Autoencoder {
  Classifier net;
  Output loss, second_loss;

  Autoencoder() {
    net.images = layers::placeholder(net.graph, "images", {2, 2, 2, 1});
    const Output rows = layers::reshape(net.graph, "rows", net.images, {.shape = {2, 4}});
    net.logits = layers::matmul(net.graph, "y", rows, layers::variable(net.graph, "w", {4, 4}));
    net.graph.set_outputs({net.logits});
  }
  void add_losses() {
    const Output target = layers::reshape(net.graph, "target/rows", net.images, {.shape = {2, 4}});
    loss = layers::mean_squared_error(net.graph, net.logits, layers::identity(net.graph, "target", target));
    const Output pictures = layers::reshape(net.graph, "pictures", net.logits, {.shape = {2, 2, 2, 1}});
    second_loss = layers::huber(net.graph, pictures, layers::placeholder(net.graph, "others", {2, 2, 2, 1}), "second");
  }
};

TEST(ModelSource, ABatchHasExamples) {
  const datasets::Dataset data = noise(28, 1);
  for (const std::int64_t batch : {0, -1})
    EXPECT_TRUE(
        testing::mentions(testing::error_of([&] { make_classifier({.model = "lenet5", .batch_size = batch}, data); }),
                          {"batch", "at least 1 example"}));
}

TEST(ModelSource, ATargetThatOnlyALossReadsIsNoInput) {
  Autoencoder autoencoder;
  autoencoder.add_losses();
  EXPECT_EQ(find_images(autoencoder.net.graph, "test"), autoencoder.net.images);
}

TEST(ModelSource, WithoutLossNothingIsLeftOfItsTarget) {
  Autoencoder plain, trained;
  trained.add_losses();
  Graph with_pictures = plain.net.graph.clone();
  layers::reshape(with_pictures, "pictures", with_pictures.at("y").output(), {.shape = {2, 2, 2, 1}});
  EXPECT_EQ(graph_to_json(without_loss(trained.net).graph), graph_to_json(with_pictures));
}

TEST(ModelSource, LogitsAreFoundAgainBehindARewrite) {
  Classifier net = make_classifier({.model = "lenet5", .batch_size = 4}, noise(28, 1));
  const Output other = layers::relu(net.graph, "other", net.logits);
  net.graph.set_outputs({other});
  find_logits(net, "test");
  EXPECT_EQ(net.logits, other);
  net.graph.set_outputs({layers::mean(net.graph, "mean", other, {.axes = {0, 1}})});
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { find_logits(net, "test"); }),
                                {"test: the first output, mean", "must be logits [n, classes]"}));
  net.graph.set_outputs({});
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { find_logits(net, "test"); }), {"must name the logits"}));
}

/// One that something else reads is part of the network.
TEST(ModelSource, ALossThatIsReadStays) {
  Autoencoder autoencoder;
  autoencoder.add_losses();
  layers::relu(autoencoder.net.graph, "read", autoencoder.loss);
  const Classifier without = without_loss(autoencoder.net);
  EXPECT_NE(without.graph.find("loss"), nullptr);
  EXPECT_NE(without.graph.find("target"), nullptr);
  EXPECT_EQ(without.graph.find("second"), nullptr);
  EXPECT_EQ(without.graph.find("others"), nullptr);
}

}  // namespace
}  // namespace miniqat::training::model_source_test
