#pragma once

#include <memory>
#include <string>

#include "core/graph/graph.h"
#include "quantize/fake_quant_attributes.h"

namespace miniqat::quantize {

/// Simulates quantization: y = scale * (q - zero_point), with a straight-through gradient.
/// Inputs x [any shape] float32, min, max; output y like x. For the observing ranges min and max must come straight
/// from Variables, which a training run updates, and have no gradient. d_min and d_max exist if the range is taken as
/// it is: for "fixed", and for any kind if is_training is false. State "num_updates" (scalar) of kinds that remember
/// earlier steps counts the observations; 0 means no batch yet. With dampening, "num_dampened" counts the training
/// steps that quantized.
struct FakeQuant {
  static constexpr std::string_view kType = "FakeQuant";
  using Attributes = FakeQuantAttributes;
  static std::shared_ptr<Op> make(const Attributes& attributes = {});
};

struct InitialRange {
  double min = -6;
  double max = 6;
};

/// Adds `name`, with its variables `name`/min and `name`/max, trainable if the range is learned. `channel_axes` is 0
/// (per tensor), 1 or 2 and sets attributes.per_channel.
Output fake_quant(Graph& graph, const std::string& name, Output x, FakeQuantAttributes attributes,
                  InitialRange initial = {}, int channel_axes = 0);

}  // namespace miniqat::quantize
