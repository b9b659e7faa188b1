#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/quantize/network_cost.h"
#include "training/report/tensor_figures.h"

namespace miniqat::training {

/// Told what comes next, before anything that takes long; may throw to end it.
using ReportProgress = std::function<void(const std::string& doing)>;

/// A weight in float and as an integer.
struct WeightSample {
  /// In the tensor's row-major order.
  std::int64_t index = 0;
  float value = 0;
  std::int64_t integer = 0;
  /// scale * (integer - zero point)
  float rounded = 0;
};

/// What quantization does at a point (quantization_points.h).
struct LayerFigures {
  std::string name;
  /// The op's type, "" of a quantizer between layers.
  std::string type;
  /// The shape of the weights, and that of the output for one picture.
  std::vector<std::int64_t> weight_shape = {};
  std::vector<std::int64_t> output_shape = {};
  /// None of a quantizer between layers.
  std::optional<LayerCost> cost = {};
  std::optional<std::int64_t> output_bits = {};
  /// Quantized weights; FloatFigures of others.
  std::optional<TensorFigures> weights = {};
  std::optional<FloatFigures> float_weights = {};
  /// What the output's quantizer reads in the quantized network.
  std::optional<TensorFigures> output = {};
  std::vector<WeightSample> samples = {};
  /// The noise of the output beside that of the network in float, which has the same variables and no quantizer at
  /// work: with the quantizers of this point alone, so that its inputs are equal, and with all. No sum without
  /// pictures, or without a quantizer.
  std::optional<NoiseSum> alone = {};
  std::optional<NoiseSum> from_picture = {};
};

/// A network whose layers are to be looked at.
struct LayerSubject {
  /// For evaluation.
  const Classifier& network;
  const NamedTensors& variables;
  /// The data set whose first `examples` pictures are looked at; null if there are none.
  const datasets::Dataset* pictures = nullptr;
  std::int64_t examples = 256;
};

/// One for each quantization point. Pictures go through the network twice, and once more for each point up to there.
/// Throws what a session throws.
std::vector<LayerFigures> layer_figures(const LayerSubject& subject, const ReportProgress& progress);

}  // namespace miniqat::training
