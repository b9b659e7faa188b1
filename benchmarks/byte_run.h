#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/tensors/tensor.h"

namespace miniqat::benchmarks {

/// Forward of a Conv2D, DepthwiseConv2d or MatMul on bytes, as `--arithmetic integer` has it between two quantizers,
/// also where its rule prefers float32. Weights have as many bits as this processor multiplies exactly. The scales are
/// 1, so results are the sums.
class ByteRun {
 public:
  /// `specs`: of x and the weights. The op must outlive the object. Runs once.
  ByteRun(const Op& op, const std::vector<TensorSpec>& specs);
  ByteRun(const ByteRun&) = delete;
  ByteRun& operator=(const ByteRun&) = delete;

  void run() { op_.forward(context_); }

  /// The first result that is not the exact sum; "" when all are.
  std::string fault() const;

  /// Read and written at least.
  double bytes() const { return static_cast<double>(bytes_[0].bytes() + bytes_[1].bytes() + y_.bytes()); }

 private:
  const Op& op_;
  std::array<Tensor, 2> bytes_;
  /// What the bytes stand for, in float64.
  std::array<Tensor, 2> numbers_;
  Tensor y_;
  ForwardContext context_;
};

}  // namespace miniqat::benchmarks
