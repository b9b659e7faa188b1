#include "bench/noise_training.h"

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "models/models.h"

namespace miniqat::bench {

NoiseTraining::NoiseTraining(const NoiseWorkload& workload)
    : model_(workload.model),
      optimizer_({.learning_rate = workload.learning_rate, .momentum = 0.9, .weight_decay = 5e-4}) {
  constexpr std::int64_t kClassesOfOtherSizes = 10;
  const models::Model& model = models::find_model(model_);
  const bool is_own_size = workload.side == 0 || workload.side == model.image[0];
  const Shape input =
      is_own_size ? model.input(workload.batch) : Shape{workload.batch, workload.side, workload.side, model.image[2]};
  const Output images = layers::placeholder(graph_, "images", input);
  const Output labels = layers::placeholder(graph_, "labels", {workload.batch}, DType::kInt32);
  const std::int64_t number = is_own_size ? model.outputs : kClassesOfOtherSizes;
  loss_ = layers::softmax_cross_entropy(graph_, model.build(graph_, images, {.outputs = number}), labels);
  if (workload.rewrite) quantize::create_training_graph(graph_, *workload.rewrite);
  session_.emplace(graph_, SessionOptions{.arithmetic = workload.arithmetic, .rounding = workload.rounding});

  Random random(1);
  Tensor pixels(images.shape()), classes(labels.shape(), DType::kInt32);
  for (float& value : pixels.values<float>()) value = random.uniform(0, 1);
  for (std::int64_t i = 0; i < workload.batch; ++i) classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
  feeds_ = {{images, pixels}, {labels, classes}};
}

void NoiseTraining::warm_up(int steps) {
  const float first = step();
  float last = first;
  for (int i = 0; i < steps; ++i) last = step();
  // Dropout makes single losses noisy; without learning they stay at ln(classes) or rise.
  if (!(last < 0.95f * first)) fail(model_, ": the loss does not fall: ", first, " to ", last);
}

}  // namespace miniqat::bench
