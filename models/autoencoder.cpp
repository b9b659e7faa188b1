#include "core/text/error.h"
#include "models/blocks.h"
#include "models/networks.h"

namespace miniqat::models {

/// The autoencoder of MLPerf Tiny's anomaly detection (Banbury et al. 2021, arXiv:2106.07597, after the baseline of
/// DCASE 2020's task 2; the benchmark's `anomaly_detection/keras_model.py`): four dense layers of 128, one of 8, four
/// of 128, each with batch norm (epsilon 0.001) and Relu, and a dense layer with bias that gives as many numbers as an
/// example has, [n, elements], whatever ModelOptions::outputs says. It takes inputs of any rank. With 640 numbers
/// 269,992 parameters as Keras counts them, 266,896 trained, and 264,192 multiply-adds. Nodes live under flatten,
/// encode1, ..., encode4, code, decode1, ..., decode4, fc.
Output autoencoder(Graph& graph, Output images, const ModelOptions& options) {
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
