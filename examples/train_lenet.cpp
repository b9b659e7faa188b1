// Trains LeNet-5 with 4-bit weights and 8-bit activations on synthetic digits for one epoch, turns it into integers,
// runs these on the test pictures' bytes and writes lenet.tflite: the whole of miniqat in one page. Fails where less
// than 90% of the pictures are recognised; about 96% are.

#include <algorithm>
#include <cstdio>

#include "core/engine/session.h"
#include "core/files.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "exporters/tflite/tflite.h"
#include "integer/engine.h"
#include "layers/layers.h"
#include "models/lenet.h"
#include "optim/sgd.h"
#include "quantize/convert/convert.h"
#include "quantize/rewrite/rewrite.h"

using namespace miniqat;

int main() {
  const datasets::Splits digits = datasets::load("synthetic");

  Graph graph;
  const Output images = layers::placeholder(graph, "images", {128, 28, 28, 1});
  const Output labels = layers::placeholder(graph, "labels", {128}, DType::kInt32);
  const Output logits = models::lenet5(graph, images, {.classes = 10});
  const Output loss = layers::softmax_cross_entropy(graph, logits, labels);
  Graph evaluation = graph.clone();

  const quantize::RewriteOptions bits = {.weight_bits = 4, .activation_bits = 8, .quant_delay = 20};
  quantize::create_training_graph(graph, bits);

  const optim::Sgd optimizer({.learning_rate = 0.05, .momentum = 0.9});
  Session session(graph, {.seed = 1});
  datasets::Loader loader(digits.train, {.batch_size = 128, .seed = 1});
  for (int step = 1; step <= loader.batches_per_epoch(); ++step) {
    const datasets::Batch& batch = loader.next();
    const float value = session.train_step(loss, optimizer, {{images, batch.images}, {labels, batch.labels}});
    if (step % 10 == 0) std::printf("step %3d  loss %.4f\n", step, value);
  }

  evaluation.set_outputs({evaluation.output_at(logits.name())});
  quantize::create_eval_graph(evaluation, bits);
  const integer::Grid bytes = {.scale = digits.test.scale, .zero_point = digits.test.zero_point, .bits = 8};
  const integer::Model model = quantize::convert(evaluation, session.variables(), {.input = bytes, .name = "lenet5"});
  write_file_atomically("lenet.tflite", exporters::tflite(model));

  integer::Engine engine(model);
  const Tensor& scores = engine.run(digits.test.images);  // [pictures, classes] uint8
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < digits.test.size(); ++i) {
    const std::uint8_t* row = scores.data<std::uint8_t>() + i * digits.test.classes;
    const auto digit = std::max_element(row, row + digits.test.classes) - row;
    correct += digit == digits.test.labels.values<std::int32_t>()[i] ? 1 : 0;
  }

  const double accuracy = static_cast<double>(correct) / static_cast<double>(digits.test.size());
  std::printf("integers: %.2f%% of %ld pictures\n", 100 * accuracy, static_cast<long>(digits.test.size()));
  return accuracy > 0.9 ? 0 : 1;
}
