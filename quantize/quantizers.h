#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "quantize/affine.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

// The FakeQuant nodes of a graph, one by one. (quantize/quantization.h sums them up.)

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

}  // namespace miniqat::quantize
