#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/suite/bench_case.h"
#include "benchmarks/suite/registry/kernel_registry.h"
#include "core/tensor.h"
#include "quantize/affine.h"

namespace miniqat::benchmarks {

/// Tensors that all cases of a size share.
struct BenchTensors {
  explicit BenchTensors(std::int64_t elements);

  /// Noise in [-1, 1).
  Tensor from;
  /// What cases write.
  Tensor to;
  Tensor mask;
};

/// A case and the kernel that does it, null for the limits. Works with thread_count() threads.
class TimedCase {
 public:
  /// `tensors` must outlive it.
  TimedCase(BenchTensors& tensors, const BenchCase& what, const NamedKernel* kernel);

  void run();
  /// The threads that share its tensor: one where it is small. All of them for a kernel of others that shares it by
  /// itself, since nobody knows.
  int threads_used() const;
  /// Throws Error unless run() gives the reference's bits, and its sums within rounding. The error, or the note of a
  /// crash, has text() and `when`.
  void verify(const std::string& when = "");

  const BenchCase& what() const { return what_; }
  const NamedKernel* kernel() const { return kernel_; }
  /// "kernel k: forward per tensor, 8 bits, 10 elements, 2 threads"
  std::string text() const;

 private:
  std::int64_t piece_unit() const;
  std::int64_t piece_count() const;
  template <class Body>
  void in_pieces(const Body& body) const;
  void forward(const float* x, float* y, const fake_quant_grid* grids) const;
  void forward_mask(std::byte* mask) const;
  void backward() const;
  void backward_learned();
  void observe_forward();
  void read() const;
  std::vector<float> expected(const std::vector<quantize::Affine<float>>& grids) const;

  BenchTensors& tensors_;
  BenchCase what_;
  const NamedKernel* kernel_;
  std::vector<quantize::Affine<float>> grids_;
  std::vector<fake_quant_grid> plugin_grids_, observed_;
  /// Of backward alone: each kernel has a layout of its own.
  Tensor own_mask_;
  std::vector<fake_quant_sums> sums_, piece_sums_;
  std::vector<float> low_, high_, piece_low_, piece_high_;
};

}  // namespace miniqat::benchmarks
