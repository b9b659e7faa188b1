#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/tensors/tensor.h"
#include "datasets/dataset.h"
#include "quantize/quantizers.h"
#include "training/model_source.h"
#include "training/quantize/network_cost.h"

namespace miniqat::training {

/// Numbers counted in bins of one width, from `first` on. Those before and behind the last are in `below` and `above`.
struct Bins {
  double first = 0;
  double width = 1;
  std::vector<std::int64_t> counts = {};
  std::int64_t below = 0;
  std::int64_t above = 0;
};

/// Signal and noise, summed: numbers beside those that stand for them.
struct NoiseSum {
  double signal = 0;
  double noise = 0;

  void add(double exact, double rounded) {
    signal += exact * exact;
    noise += (rounded - exact) * (rounded - exact);
  }
  /// 10 log10(signal / noise). None where one of them is 0.
  std::optional<double> decibels() const;
};

/// The numbers of a tensor beside its integers.
struct TensorFigures {
  quantize::QuantizerRange quantizer;
  std::int64_t quant_min = 0, quant_max = 0;
  /// Without those that are NaN, which have no integer.
  std::int64_t values = 0;
  std::int64_t nan = 0;
  float min = 0, max = 0;
  /// Cut off, not only rounded: more than half a step beyond the last number of the grid.
  std::int64_t clipped = 0;
  /// How many numbers became each integer from quant_min on; of more than 256 integers, several in one.
  std::vector<std::int64_t> integers = {};
  std::int64_t integers_per_count = 1;
  /// Integers that no number became.
  std::int64_t unused = 0;
  /// The numbers in steps of the grid, each on its channel's: the integers are at 1, 2, 3, ... Each of `integers` has a
  /// whole number of bins around it, and, but for the ends of the grid, as many numbers as these.
  Bins floats = {};
  /// What rounding and clipping do to this tensor.
  NoiseSum noise = {};

  std::int64_t levels() const { return quant_max - quant_min + 1; }
};

/// Counts a tensor, part by part.
class TensorCounter {
 public:
  /// The range must have a number for each channel, or one, and all must be finite.
  explicit TensorCounter(const quantize::QuantizerRange& quantizer);

  /// The first `elements` numbers of `x`, float32, whose last axes are the channels where there is more than one range.
  void add(const Tensor& x, std::int64_t elements);
  TensorFigures finish() const;

 private:
  TensorFigures figures_;
  std::vector<quantize::Affine<float>> grids_;
  /// How often each integer occurs.
  std::vector<std::int64_t> counts_;
  std::int64_t bins_per_integer_ = 1;
  /// Integers that the bins reach beyond each end of the grid.
  std::int64_t margin_ = 1;
};

/// Numbers without a grid, in 64 bins from the smallest to the largest; no bins if one of them is not finite.
struct FloatFigures {
  std::int64_t values = 0;
  float min = 0, max = 0;
  Bins floats = {};
};
FloatFigures float_figures(const Tensor& x);

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
