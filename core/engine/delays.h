#pragma once

#include <cstdint>
#include <vector>

namespace miniqat {

class Graph;

/// How many of the graph's delays have passed: requests that differ in nothing else may share a plan when they agree.
struct PassedDelays {
  std::int64_t quantization = 0;
  std::int64_t freeze = 0;
  friend bool operator==(const PassedDelays&, const PassedDelays&) = default;
};

/// Every delay of a graph's ops once, in order.
struct Delays {
  std::vector<std::int64_t> quantization;
  std::vector<std::int64_t> freeze;

  explicit Delays(const Graph& graph);
  Delays() = default;
  PassedDelays passed(std::int64_t quantization_step) const;
};

}  // namespace miniqat
