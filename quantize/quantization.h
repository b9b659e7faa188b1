#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// How a graph is quantized, as its quantizers say: those of a rewrite and any others.
struct Quantization {
  int quantizers = 0;
  /// The widths that occur, of weights and of everything else.
  std::set<std::int64_t> weight_bits;
  std::set<std::int64_t> activation_bits;
  /// Some weights have a range for each output channel.
  bool per_channel = false;
  /// All of them are symmetric.
  bool symmetric_weights = false;
  bool symmetric_activations = false;
  /// All weights use all integers, also the lowest one.
  bool full_range_weights = false;
  /// Layers differ: in widths or in symmetry.
  bool mixed = false;
  /// Some ranges are trained.
  bool learned = false;
  /// All scales are powers of two.
  bool power_of_two = false;
  /// A batch norm is folded late (BnFold::kLate).
  bool late = false;
  /// A batch norm is folded with a single convolution (BnFold::kSingle); evaluation graphs don't show it.
  bool single = false;
  /// The smallest delay of the quantizers that train, 0 where there is none.
  std::int64_t delay = 0;

  bool is_float() const { return quantizers == 0; }
  /// "float", "W8A8", "W4A8 per channel symmetric weights", "W2A2 learned symmetric weights full range"; "W2-8A8 mixed"
  /// where layers differ; "-" for no width at all.
  std::string label() const;
  /// {"weights": 4, "activations": 8}: a number, a list of them where layers differ, null where there is none; null for
  /// a float network.
  nlohmann::ordered_json bits() const;
};

/// Looks at structure only. A quantizer is one of weights when a layer reads it where its weights go.
Quantization quantization_of(const Graph& graph);

/// The value of the quantization step counter from which on a FakeQuant quantizes; none in evaluation graphs.
std::optional<std::int64_t> quant_delay_of(const Node& node);
/// The value from which on a BatchNorm or BatchNormCorrection is frozen.
std::optional<std::int64_t> freeze_delay_of(const Node& node);

/// The number of the graph's delays that have passed.
struct PassedDelays {
  std::int64_t quantization = 0;
  std::int64_t freeze = 0;
  friend bool operator==(const PassedDelays&, const PassedDelays&) = default;
};

/// Every delay of a graph's quantizers and batch norms once, in order.
struct QuantizationDelays {
  std::vector<std::int64_t> quantization;
  std::vector<std::int64_t> freeze;

  explicit QuantizationDelays(const Graph& graph);
  PassedDelays passed(std::int64_t quantization_step) const;
};

}  // namespace miniqat::quantize
