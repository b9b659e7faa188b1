#include "benchmarks/suite/steps/noise_training.h"

#include "core/random.h"
#include "layers/layers.h"

namespace miniqat::benchmarks {

Shape picture_of(const models::Model& model) {
  return model.image[0] > 64 ? Shape{32, 32, model.image[2]} : model.image;
}

NoiseTraining::NoiseTraining(const models::Model& model, const std::optional<quantize::RewriteOptions>& rewrite,
                             std::int64_t batch) {
  const Shape picture = picture_of(model);
  const Output images = layers::placeholder(graph_, "images", {batch, picture[0], picture[1], picture[2]});
  const Output labels = layers::placeholder(graph_, "labels", {batch}, DType::kInt32);
  loss_ = layers::softmax_cross_entropy(graph_, model.build(graph_, images, {}), labels);
  if (rewrite) quantize::create_training_graph(graph_, *rewrite);
  session_.emplace(graph_);

  Random random(1);
  Tensor pixels(images.shape()), classes(labels.shape(), DType::kInt32);
  for (float& value : pixels.values<float>()) value = random.uniform(0, 1);
  for (std::int64_t i = 0; i < batch; ++i) classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
  feeds_ = {{images, pixels}, {labels, classes}};
}

void NoiseTraining::judged_step(quantize::StepJudge& judge) {
  session_->set_observer(judge.observer());
  step();
  session_->set_observer(nullptr);
}

std::size_t NoiseTraining::arena() const { return session_->plan_memory().arena; }

}  // namespace miniqat::benchmarks
