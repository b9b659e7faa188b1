#pragma once

#include <cstddef>
#include <functional>
#include <string>
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

/// Calls a function with the feeds of each batch, the same ones every time. It may throw, to stop.
using FeedsOfBatches = std::function<void(const std::function<void(const Feeds&)>&)>;

/// Called before each layer with its name, its number from 1, and their number.
using OnLayer = std::function<void(const std::string&, std::size_t, std::size_t)>;

}  // namespace miniqat::quantize
