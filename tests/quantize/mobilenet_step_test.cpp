// The networks that this is for, at the size they were published for: rewritten, strict, and trained for a step.
#include <gtest/gtest.h>

#include <cmath>

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "models/models.h"
#include "optim/sgd.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/quantize/toy_graph.h"

namespace miniqat::quantize::mobilenet_step_test {
namespace {

struct StepCase {
  const char* model;
  std::int64_t side;
  BnFold bn_fold;
  bool per_channel;
};

class MobilenetStep : public ::testing::TestWithParam<StepCase> {};

Tensor random_images(const Shape& shape) {
  Tensor images(shape);
  Random random(7);
  for (float& pixel : images.values<float>()) pixel = random.normal();
  return images;
}

TEST_P(MobilenetStep, RewritesStrictlyAndTrains) {
  const auto& [name, side, bn_fold, per_channel] = GetParam();
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {1, side, side, 3});
  const Output labels = layers::placeholder(graph, "labels", {1}, DType::kInt32);
  const Output logits = models::find_model(name).build(graph, images, {.outputs = 1000});
  graph.set_outputs({logits});
  const Output loss = layers::softmax_cross_entropy(graph, logits, labels);
  Graph evaluation = graph.clone();
  const RewriteOptions options = {.per_channel = per_channel, .bn_fold = bn_fold, .strict = true};
  const RewriteReport report = create_training_graph(graph, options);
  for (const BatchNormReport& norm : report.batch_norms)
    EXPECT_TRUE(norm.folded) << norm.batch_norm << ": " << norm.text;
  EXPECT_GE(report.batch_norms.size(), 19u);
  EXPECT_NO_THROW(create_eval_graph(evaluation, options));

  Session session(graph);
  const optim::Sgd optimizer({.learning_rate = 0.01f, .momentum = 0.9f});
  const Feeds feeds = {{images, random_images(images.shape())}, {labels, Tensor(Shape{1}, DType::kInt32)}};
  EXPECT_TRUE(std::isfinite(session.train_step(loss, optimizer, feeds)));
  std::size_t bytes = session.plan_memory().arena;
  for (const auto& [variable, value] : session.variables()) bytes += 3 * value.bytes();
  EXPECT_LT(bytes, std::size_t{400} << 20) << "activations and gradients, and variables with their momentum";
  RecordProperty("arena_megabytes", static_cast<int>(session.plan_memory().arena >> 20));

  Session test_session(evaluation);
  test_session.restore(session.checkpoint(), Session::Restore::kVariables, "the training graph");
  const Output result = evaluation.outputs().front();
  const Tensor y =
      test_session.run({.fetches = {result}}, {{evaluation.at("images").output(), feeds[0].second}}).fetched[0];
  for (const float value : y.values<float>()) ASSERT_TRUE(std::isfinite(value));
}

INSTANTIATE_TEST_SUITE_P(Models, MobilenetStep,
                         ::testing::Values(StepCase{"mobilenet_v1", 224, BnFold::kTf, false},
                                           StepCase{"mobilenet_v1", 224, BnFold::kSingle, true},
                                           StepCase{"mobilenet_v2", 224, BnFold::kTf, true},
                                           StepCase{"mobilenet_v2", 224, BnFold::kSingle, false},
                                           StepCase{"resnet20", 32, BnFold::kTf, false},
                                           StepCase{"resnet20", 32, BnFold::kSingle, true}),
                         [](const auto& info) {
                           return std::string(info.param.model) +
                                  (info.param.bn_fold == BnFold::kTf ? "_tf" : "_single");
                         });

}  // namespace
}  // namespace miniqat::quantize::mobilenet_step_test
