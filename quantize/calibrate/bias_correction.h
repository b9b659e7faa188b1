#pragma once

#include <string>
#include <vector>

#include "core/engine/session.h"
#include "quantize/calibrate/channel_pairs.h"
#include "quantize/calibrate/float_network.h"

namespace miniqat::quantize {

/// The numbers subtracted from a layer's bias, or from the beta of its folded batch norm.
struct CorrectedBias {
  std::string layer;
  std::string variable;
  /// The mean error of each output channel of the layer.
  std::vector<double> errors;
};

struct BiasCorrection {
  /// In topological order.
  std::vector<CorrectedBias> corrected;
  std::vector<LeftOutLayer> left_out;

  /// For people: a line for each layer.
  std::string text() const;
};

/// Empirical bias correction (Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias
/// Correction", section 4.2 and appendix D): quantization shifts the mean of a layer's output. From the bias of channel
/// c of each quantized layer, in the graph's order, subtracts
///   E[W_q x_q]_c - E[W x]_c,
/// over all batches and pixels. W x is that of the float network (no quantizer at work), W_q x_q that of the quantized
/// one whose earlier layers are corrected. Both are taken before the activation.
///
/// `session` holds a graph that create_eval_graph rewrote, with its ranges found (Calibrator). Sets the variables, so a
/// second call would correct towards another float network. Layers without a bias that is a Variable of their own are
/// left out. `in_float` has the float network's variables where the session's are others (adaptive_rounding.h). Runs
/// the network once for the float means and once for each layer, up to that layer. Throws Error for no batch, and for
/// means that are not finite.
BiasCorrection correct_biases(Session& session, const FeedsOfBatches& batches, const NamedTensors& in_float = {},
                              const OnLayer& on_layer = {});

}  // namespace miniqat::quantize
