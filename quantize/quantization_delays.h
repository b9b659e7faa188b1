#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace miniqat::quantize {

/// The value of the quantization step counter from which on a FakeQuant quantizes; none in evaluation graphs.
std::optional<std::int64_t> quant_delay_of(const Node& node);
/// The one from which on a BatchNorm or BatchNormCorrection is frozen.
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
