#include "benchmarks/integer_models.h"

#include "core/engine/session.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/convert/convert.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::benchmarks {

std::string InferenceWorkload::name() const { return side == 0 ? model : concat(model, "/side:", side); }

Graph float_graph(const InferenceWorkload& workload, std::int64_t batch) {
  constexpr std::int64_t kClassesOfSmallPictures = 10;
  const models::Model& model = models::find_model(workload.model);
  const std::int64_t side = workload.side == 0 ? model.image[0] : workload.side;
  Graph graph;
  const Output images = layers::placeholder(graph, "images", {batch, side, side, model.image[2]});
  const std::int64_t classes = side == model.image[0] ? model.outputs : kClassesOfSmallPictures;
  graph.set_outputs({model.build(graph, images, {.outputs = classes})});
  return graph;
}

integer::Model integer_model(const InferenceWorkload& workload) {
  constexpr std::int64_t kBatch = 4;
  Graph training = float_graph(workload, kBatch);
  quantize::create_training_graph(training);
  const Output images = training.output_at("images");
  Random random(1);
  Tensor pixels(images.shape());
  for (float& pixel : pixels.values<float>()) pixel = random.uniform();
  Session session(training);
  session.run({.fetches = training.outputs(), .training = true}, {{images, pixels}});
  Graph evaluation = float_graph(workload, kBatch);
  quantize::create_eval_graph(evaluation);
  return quantize::convert(evaluation, session.variables(), {.name = workload.name()});
}

Tensor noise(const integer::Model& model, std::int64_t n) {
  const integer::TensorInfo& input = model.tensor(model.input);
  Tensor images(integer::batch_shape(n, input.shape), DType::kUInt8);
  Random random(2);
  for (std::uint8_t& pixel : images.values<std::uint8_t>())
    pixel = static_cast<std::uint8_t>(random.below(static_cast<std::uint64_t>(input.grid.quant_max()) + 1));
  return images;
}

}  // namespace miniqat::benchmarks
