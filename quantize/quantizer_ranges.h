#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/safetensors.h"
#include "quantize/affine.h"
#include "quantize/fake_quant.h"

namespace miniqat::quantize {

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

/// Those of a graph's quantizers in topological order, with the values of its variables by name, as
/// Session::variables() or a checkpoint has them. Left out: quantizers whose ends are neither Variables with a value
/// there nor Constants.
std::vector<QuantizerRange> quantizer_ranges(const Graph& graph, const NamedTensors& variables);

/// Whether both ends of a quantizer's range are Variables with the values that their initializers give. False where a
/// value is missing.
bool has_initial_range(const Node& quantizer, const NamedTensors& variables);

}  // namespace miniqat::quantize
