// Trains LeNet-5 with 4-bit weights and 8-bit activations on synthetic digits for one epoch, turns it into integers,
// compares these with the simulation on all test pictures and writes lenet.tflite: the whole of miniqat in one page.
// Fails where less than 90% of the pictures are recognised; about 96% are.

#include <cstdio>

#include "core/engine/session.h"
#include "core/files/files.h"
#include "datasets/known_datasets.h"
#include "datasets/loader.h"
#include "exporters/tflite/tflite.h"
#include "optim/sgd.h"
#include "quantize/convert/convert.h"
#include "quantize/rewrite/rewrite.h"
#include "training/model_source.h"
#include "training/run/integer_source.h"
#include "training/verify/verifier.h"

using namespace miniqat;

int main() {
  const datasets::Splits digits = datasets::load("synthetic");

  training::Classifier net = training::make_classifier({.model = "lenet5", .batch_size = 128}, digits.train);
  const auto [labels, loss] = training::add_loss(net);
  quantize::create_training_graph(net.graph, {.weight_bits = 4, .activation_bits = 8, .quant_delay = 20});

  const optim::Sgd optimizer({.learning_rate = 0.05, .momentum = 0.9});
  Session session(net.graph, {.seed = 1});
  datasets::Loader loader(digits.train, {.batch_size = 128, .seed = 1});
  for (int step = 1; step <= loader.batches_per_epoch(); ++step) {
    const datasets::Batch& batch = loader.next();
    const float value = session.train_step(loss, optimizer, {{net.images, batch.images}, {labels, batch.labels}});
    if (step % 10 == 0) std::printf("step %3d  loss %.4f\n", step, value);
  }

  training::Classifier evaluation = training::evaluation_of(net);
  const integer::Model model = quantize::convert(evaluation.graph, session.variables(),
                                                 {.input = training::grid_of(digits.test), .name = "lenet5"});
  write_file_atomically("lenet.tflite", exporters::tflite(model));

  Session simulation(evaluation.graph);
  simulation.restore(session.checkpoint(), Session::Restore::kVariables, "the trained network");
  const training::Verification verified = training::verify(simulation, evaluation, model, digits.test);
  for (const training::Score& score : {verified.simulated, verified.integer})
    std::printf("%-9s  %.2f%% of %ld pictures\n", score.name.c_str(), 100 * score.accuracy(),
                static_cast<long>(score.examples));
  return verified.integer.accuracy() > 0.9 ? 0 : 1;
}
