// Trains LeNet-5 with 4-bit weights and activations on synthetic digits for one epoch: the whole of miniqat in one
// page.

#include <cstdio>

#include "core/session.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "layers/layers.h"
#include "models/lenet.h"
#include "optim/sgd.h"
#include "quantize/rewrite.h"

using namespace miniqat;

int main() {
  const datasets::Splits digits = datasets::load("synthetic");

  Graph graph;
  const Output images = layers::placeholder(graph, "images", {128, 28, 28, 1});
  const Output labels = layers::placeholder(graph, "labels", {128}, DType::kInt32);
  const Output logits = models::lenet5(graph, images, {.classes = 10});
  const Output loss = layers::softmax_cross_entropy(graph, logits, labels);

  quantize::create_training_graph(graph, {.weight_bits = 4, .activation_bits = 4, .quant_delay = 20});

  const optim::Sgd optimizer({.learning_rate = 0.05, .momentum = 0.9});
  Session session(graph, {.seed = 1});
  datasets::Loader loader(digits.train, {.batch_size = 128, .seed = 1});
  for (int step = 1; step <= loader.batches_per_epoch(); ++step) {
    const datasets::Batch& batch = loader.next();
    const float value = session.train_step(loss, optimizer, {{images, batch.images}, {labels, batch.labels}});
    if (step % 10 == 0) std::printf("step %3d  loss %.4f\n", step, value);
  }
}
