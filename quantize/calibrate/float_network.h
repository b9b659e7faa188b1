#pragma once

#include <vector>

#include "core/engine/session.h"

namespace miniqat::quantize {

/// A rewritten network without its quantizers.
class FloatNetwork {
 public:
  /// Copies the session's graph and shares its variables' present values, but for those in `others`.
  explicit FloatNetwork(Session& quantized, const NamedTensors& others = {});

  /// Outputs and feeds are those of the quantized graph.
  std::vector<Tensor> run(const std::vector<Output>& fetches, const Feeds& feeds);

 private:
  Graph graph_;
  Session session_;
};

}  // namespace miniqat::quantize
