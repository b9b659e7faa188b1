#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "integer/engine.h"
#include "integer/model.h"

namespace miniqat::training {

/// How often two lists of integers agree.
struct Agreement {
  std::int64_t count = 0;
  std::int64_t equal = 0;
  /// The largest difference, in steps of the grid.
  int largest = 0;

  /// `a` and `b`: [n, ...] uint8 of one shape; only the first `valid` examples count.
  void add(const Tensor& a, const Tensor& b, std::int64_t valid);
  double share() const { return count == 0 ? 1 : static_cast<double>(equal) / static_cast<double>(count); }
};

/// One operation of the integer model against the simulated graph.
struct LayerComparison {
  std::string operation;
  std::string type;
  std::string tensor;
  /// Given the simulated graph's integers as inputs: what this operation does differently.
  Agreement alone;
  /// From the picture on: what has gathered up to here.
  Agreement end_to_end;
};

/// Compares the integer model with the evaluation graph, tensor by tensor.
class LayerComparer {
 public:
  explicit LayerComparer(const integer::Model& model);
  ~LayerComparer();

  /// `simulated` and `integers` hold every tensor of the model, in its order, each [n, ...] uint8: what the evaluation
  /// graph has, as integers, and what the engine made of the same pictures. The first `valid` examples count. A
  /// simulated one that the graph does not have (conversion made it, docs/integer-arithmetic.md#coarse-units) is
  /// undefined; what its operation makes of simulated inputs takes its place.
  void add(std::vector<Tensor> simulated, const std::vector<Tensor>& integers, std::int64_t valid);
  const std::vector<LayerComparison>& layers() const { return layers_; }

 private:
  Tensor run_alone(std::size_t i, const std::vector<Tensor>& simulated);

  const integer::Model& model_;
  /// For each operation with one input, an engine of it alone; null for the others, which the reference loops run.
  std::vector<std::unique_ptr<integer::Engine>> engines_;
  std::vector<LayerComparison> layers_;
};

/// A tensor of numbers on the grid, float32, as their integers.
Tensor integers_of(const Tensor& values, const integer::Grid& grid);

}  // namespace miniqat::training
