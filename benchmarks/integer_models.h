#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "core/tensors/tensor.h"
#include "integer/model.h"

namespace miniqat::benchmarks {

/// A model by name on pictures of `side` pixels; 0 takes the model's own size.
struct InferenceWorkload {
  std::string model;
  std::int64_t side = 0;

  std::string name() const;
};

/// The float graph for evaluation; its placeholder is "images" [batch, side, side, channels], its output the logits.
Graph float_graph(const InferenceWorkload& workload, std::int64_t batch);

/// The integer model of the same graph, W8A8 per tensor: rewritten, its ranges observed on one batch of noise, not
/// trained.
integer::Model integer_model(const InferenceWorkload& workload);

/// n pictures of noise, [n, ...] uint8, each integer on the model's input grid.
Tensor noise(const integer::Model& model, std::int64_t n);

}  // namespace miniqat::benchmarks
