#include "models/autoencoder.h"

#include "core/text/error.h"
#include "models/blocks.h"

namespace miniqat::models {

Output autoencoder(Graph& graph, Output images, const ModelOptions& options) {
  require_input("autoencoder", images.shape());
  constexpr int kLayersASide = 4;
  const std::int64_t hidden = scaled(128, options.width), code = scaled(8, options.width);
  const Normalisation relu = {.activation = Activation::kRelu, .batch_norm = {.decay = options.batch_norm_decay}};
  Output x = flatten(graph, "flatten", images);
  const std::int64_t elements = x.shape()[1];
  for (int k = 1; k <= kLayersASide; ++k) x = dense_norm(graph, concat("encode", k), x, hidden, relu);
  x = dense_norm(graph, "code", x, code, relu);
  for (int k = 1; k <= kLayersASide; ++k) x = dense_norm(graph, concat("decode", k), x, hidden, relu);
  return dense(graph, "fc", x, elements);
}

}  // namespace miniqat::models
