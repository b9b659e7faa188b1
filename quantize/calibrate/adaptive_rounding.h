#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "quantize/calibrate/channel_pairs.h"
#include "quantize/calibrate/float_network.h"

namespace miniqat::quantize {

struct RoundingOptions {
  /// Chooses the patches.
  std::uint64_t seed = 1;
  /// The most patches that are taken of a layer's input in each batch.
  std::int64_t patches = 2048;
  /// Layers with more weights for an output are left out: a matrix of their square, and its factor, are kept in memory.
  std::int64_t most_inputs = 4096;
  /// Asked often, also while a layer is searched, from several threads. Once it says true, round_adaptively() returns
  /// with the layers that are done; no other has changed.
  std::function<bool()> stops = {};
};

/// What became of a layer's weights.
struct RoundedLayer {
  std::string layer;
  std::string variable;
  std::int64_t weights = 0;
  /// The weights that were not rounded to the nearest integer.
  std::int64_t moved = 0;
  /// E||W_q x_q - W x||^2 / E||W x||^2, with the nearest integers and with those chosen.
  double nearest_error = 0;
  double error = 0;
};

struct AdaptiveRounding {
  /// In topological order.
  std::vector<RoundedLayer> rounded;
  std::vector<LeftOutLayer> left_out;
  /// The variables that were changed, as they were before.
  NamedTensors before;

  /// For people: a line for each layer.
  std::string text() const;
};

/// Adaptive rounding (Nagel et al. 2020, "Up or Down? Adaptive Rounding for Post-Training Quantization"): moves weights
/// so that rounding to nearest takes each to one of the two integers next to it, those that make
///   E||W_q x_q - W x||^2
/// small over the batches, layer by layer. W x is the layer's output in the float network, x_q its input in the
/// quantized one whose earlier layers are rounded (the paper's asymmetric reconstruction, eq. 25, without the
/// activation function). round_rows() searches; a hundredth of the mean square of an input is added to each, against
/// overfitting. Ranges stay, and so do weights whose nearest integer is chosen; the others end an eighth of the way
/// from the middle between two integers to the chosen one (in half steps). A folded weight w gamma / sigma is moved
/// through w.
///
/// `session` holds a graph that create_eval_graph rewrote, with its ranges found (Calibrator). Left out are layers
/// whose weights are no Variable of their own. Runs both networks once for each layer, up to that layer. The result
/// depends on the seed and the number of threads. Throws Error for no batch, and for values that are not finite.
AdaptiveRounding round_adaptively(Session& session, const FeedsOfBatches& batches, const RoundingOptions& options = {},
                                  const OnLayer& on_layer = {});

}  // namespace miniqat::quantize
