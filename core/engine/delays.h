#pragma once

#include <cstdint>
#include <vector>

namespace miniqat {

class Graph;

/// The steps at which some op of a graph begins to do something else (ChangesLater), each once, in order.
class Delays {
 public:
  explicit Delays(const Graph& graph);
  Delays() = default;

  bool empty() const { return steps_.empty(); }
  /// The number of passed delays. Requests that are equal in it and in all else may share a plan.
  std::int64_t passed(std::int64_t quantization_step) const;

 private:
  std::vector<std::int64_t> steps_;
};

}  // namespace miniqat
