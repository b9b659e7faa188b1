#include "tests/quantize/trained_net.h"

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "layers/layers.h"
#include "optim/sgd.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/quantizers.h"

namespace miniqat::testing {
namespace {

constexpr int kSteps = 3;

Tensor random_pictures(Random& random, const Shape& shape) {
  Tensor pictures(shape);
  for (float& pixel : pictures.values<float>())
    pixel = integer::dequantize(kPictures, static_cast<std::int32_t>(random.below(256)));
  return pictures;
}

Tensor random_numbers(Random& random, const Shape& shape) {
  Tensor numbers(shape);
  for (float& number : numbers.values<float>()) number = static_cast<float>(random.uniform() - 0.5);
  return numbers;
}

Feeds random_feeds(Random& random, const std::vector<Output>& images) {
  Feeds feeds;
  for (const Output& placeholder : images)
    feeds.emplace_back(placeholder, random_pictures(random, placeholder.shape()));
  return feeds;
}

std::vector<Output> placeholders_of(const Graph& graph) {
  std::vector<Output> found;
  for (Node* node : graph.topological_order())
    if (node->type() == "Placeholder") found.push_back(node->output());
  return found;
}

/// As a run does: at least squares.
void start_learned_ranges(Session& training, Graph& evaluation, Random& random) {
  Session session(evaluation);
  session.restore({.tensors = training.variables(), .metadata = {}}, Session::Restore::kByName, "the training graph");
  quantize::Calibrator calibrator(session, {});
  calibrator.observe(random_feeds(random, placeholders_of(evaluation)));
  for (const quantize::CalibratedRange& range : calibrator.finish())
    if (traits_of(range.attributes.range).learned)
      for (const char* end : {"/min", "/max"})
        training.set_variable(range.quantizer + end, session.variable(range.quantizer + end));
}

}  // namespace

TrainedNet train_briefly(const Graph& graph, const quantize::RewriteOptions& options, std::uint64_t seed) {
  TrainedNet net = {.evaluation = graph.clone(), .variables = {}};
  Graph training = graph.clone();
  quantize::create_eval_graph(net.evaluation, options);
  quantize::create_training_graph(training, options);
  const std::vector<Output> images = placeholders_of(training);
  // Every number of the output gets another gradient.
  const Output y = training.outputs().front();
  const Output weighting = layers::placeholder(training, "test_weighting", y.shape());
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < y.shape().rank(); ++axis) axes.push_back(axis);
  const Output loss =
      layers::mean(training, "test_loss", layers::mul(training, "test_product", y, weighting), {.axes = axes});
  Session session(training, {.seed = seed});
  Random random(seed);
  if (quantize::quantization_of(training).learned) start_learned_ranges(session, net.evaluation, random);
  for (int step = 0; step < kSteps; ++step) {
    const Tensor weights = random_numbers(random, y.shape());
    Feeds feeds = random_feeds(random, images);
    feeds.emplace_back(weighting, weights);
    session.train_step(loss, optim::Sgd({.learning_rate = 0.05, .ranges = {.learning_rate = 0.05}}), feeds);
  }
  net.variables = session.variables();
  return net;
}

}  // namespace miniqat::testing
