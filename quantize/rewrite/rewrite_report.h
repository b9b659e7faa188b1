#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quantize/fold/fold_pass.h"

namespace miniqat::quantize {

/// The fate of one edge (a tensor into a consumer) or of one candidate layer.
enum class EdgeStatus {
  /// The edge carries a FakeQuant's output.
  kQuantized,
  /// Inside a layer's match: the integer engine computes both ends as one.
  kFused,
  /// Goes through an op that keeps the range of its quantized input (MaxPool, Reshape, Identity, Dropout, ...).
  kPassedThrough,
  /// Comes from a placeholder: the data set brings scale and zero point.
  kInput,
  /// Serves only to find a batch norm's statistics while training; evaluation has no such edge.
  kStatistics,
  kLeftFloat,
};

/// "quantized", "fused", "passed through", "input", "statistics", "left float".
std::string_view name_of(EdgeStatus status);

struct EdgeReport {
  /// "conv1/Conv2D" or "name:k" for the tensor; "conv1/BiasAdd" for the consumer.
  std::string tensor;
  std::string consumer;
  EdgeStatus status = EdgeStatus::kLeftFloat;
  /// Why; for quantized edges the FakeQuant's name.
  std::string reason;
};

/// One line of what the passes did: "conv1/Conv2D: matched layer + bias + Relu; ..." or why not.
struct MatchReport {
  std::string layer;
  bool matched = false;
  std::string text;
  /// A layer that is kept for a batch norm's statistics: neither matched nor left out.
  bool statistics = false;
};

/// A quantizer by its name, and how many numbers it quantizes: of an activation, those of a whole batch.
struct QuantizedTensor {
  std::string quantizer;
  std::int64_t elements = 0;
};

/// The quantizers that the bits of one layer (RewriteOptions::layer_bits) decide about. A tensor that several layers
/// share belongs to the first of them.
struct LayerQuantizers {
  std::string layer;
  /// None or one.
  std::vector<QuantizedTensor> weights = {};
  /// The quantizers on the layer's output, none to three, and with sums_bits those that layers read behind them.
  std::vector<QuantizedTensor> output = {};
};

/// Something that was rewritten before with another setting than the options have; it stays as it is.
struct SettingConflict {
  /// The setting's name as in RewriteOptions, "bits_config" for layer_bits.
  std::string setting;
  /// "conv1/weights_quant has 2 bits, not 8".
  std::string text;
};

struct RewriteReport {
  std::vector<BatchNormReport> batch_norms;
  std::vector<MatchReport> matches;
  std::vector<EdgeReport> edges;
  /// The quantizers of the matched layers, in the topological order that the graph has without quantizers.
  std::vector<LayerQuantizers> quantizers;
  /// Names of the FakeQuants that this call inserted, in order; empty when rewriting again.
  std::vector<std::string> inserted;
  /// Requests without effect, and parts that stay float or keep their statistics.
  std::vector<std::string> remarks;
  /// Options that are legal and hardly meant.
  std::vector<std::string> warnings;
  /// None for the first rewrite of a float graph, and for a second one with the same options.
  std::vector<SettingConflict> conflicts;

  /// A line "warning: ..." for each warning and "note: ..." for each remark; "" when there is none.
  std::string notes() const;
  /// For people: notes, matches, skips and edges in aligned columns.
  std::string text() const;
};

}  // namespace miniqat::quantize
