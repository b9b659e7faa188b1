#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "quantize/affine.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

// The FakeQuant nodes of a graph, one by one, in sum (Quantization), and in words.

/// Whether a layer reads the quantizer where its weights go.
bool quantizes_weights(const Node& quantizer);

/// Whether it is a quantizer whose range is learned and, as those of a rewrite, two Variables: what a run can start and
/// an optimizer can move.
bool has_learned_variables(const Node& node);

/// The range that a quantizer would quantize with, as its variables say.
struct QuantizerRange {
  std::string quantizer;
  FakeQuantAttributes attributes;
  bool is_weights = false;
  /// One for each channel, or a single one.
  std::vector<Range<float>> ranges = {};

  /// The least of the lower ends and the greatest of the upper ones.
  Range<float> extremes() const;
  /// The grid of each range, in their order.
  std::vector<Affine<float>> grids() const;
};

/// The range of each quantizer of a graph in topological order, with the values of the graph's variables by name, as
/// Session::variables() or a checkpoint has them. Left out: quantizers whose ends are neither Variables with a value
/// there nor Constants.
std::vector<QuantizerRange> quantizer_ranges(const Graph& graph, const NamedTensors& variables);

/// Whether both ends of a quantizer's range are Variables with the values that their initializers give. False where a
/// value is missing.
bool has_initial_range(const Node& quantizer, const NamedTensors& variables);

/// Oscillation dampening (FakeQuantAttributes::dampening) for all weights of a rewritten graph whose ranges are learned
/// or observed: the coefficient grows to `dampening` over `steps` steps. A graph for evaluation takes it too, so that a
/// checkpoint fits both. Returns how many quantizers it has set.
std::int64_t dampen_weights(Graph& graph, double dampening, std::int64_t steps);

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

/// The special properties of a quantizer, in words: {"per channel", "symmetric", "narrow"} or some of these, in this
/// order.
std::vector<std::string> grid_words(const FakeQuantAttributes& attributes);

/// The bits and all of these in one line: "8 bits, last value, per channel, narrow, delay 100".
std::string quantizer_text(const FakeQuantAttributes& attributes);

/// Whether the node is a FakeQuant's min or max and nothing else: a Variable that is not trained or a Constant, which
/// says nothing that the quantizer does not say. False for a graph output.
bool is_range_only(const Graph& graph, const Node& node);

}  // namespace miniqat::quantize
