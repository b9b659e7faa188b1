#include "tests/quantize/trained_net.h"

#include "core/engine/session.h"
#include "core/random.h"
#include "layers/layers.h"
#include "optim/sgd.h"

namespace miniqat::testing {
namespace {

constexpr int kSteps = 3;

Tensor random_pictures(Random& random, const Shape& shape) {
  const Tensor pictures(shape);
  for (float& pixel : pictures.values<float>())
    pixel = integer::dequantize(kPictures, static_cast<std::int32_t>(random.below(256)));
  return pictures;
}

Tensor random_numbers(Random& random, const Shape& shape) {
  const Tensor numbers(shape);
  for (float& number : numbers.values<float>()) number = static_cast<float>(random.uniform() - 0.5);
  return numbers;
}

}  // namespace

TrainedNet train_briefly(const Graph& graph, const quantize::RewriteOptions& options, std::uint64_t seed) {
  TrainedNet net = {.evaluation = graph.clone(), .variables = {}};
  Graph training = graph.clone();
  quantize::create_eval_graph(net.evaluation, options);
  quantize::create_training_graph(training, options);
  std::vector<Output> images;
  for (Node* node : training.nodes())
    if (node->type() == "Placeholder") images.push_back(node->output());
  // Every number of the output gets another gradient.
  const Output y = training.outputs().front();
  const Output weighting = layers::placeholder(training, "test_weighting", y.shape());
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < y.shape().rank(); ++axis) axes.push_back(axis);
  const Output loss =
      layers::mean(training, "test_loss", layers::mul(training, "test_product", y, weighting), {.axes = axes});
  Session session(training, {.seed = seed});
  Random random(seed);
  for (int step = 0; step < kSteps; ++step) {
    Feeds feeds = {{weighting, random_numbers(random, y.shape())}};
    for (const Output& placeholder : images)
      feeds.emplace_back(placeholder, random_pictures(random, placeholder.shape()));
    session.train_step(loss, optim::Sgd({.learning_rate = 0.05}), feeds);
  }
  net.variables = session.variables();
  return net;
}

}  // namespace miniqat::testing
