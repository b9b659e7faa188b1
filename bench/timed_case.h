#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/foreign_code.h"
#include "bench/kernel_registry.h"
#include "bench/operation.h"
#include "quantize/affine.h"

namespace miniqat::bench {

/// Tensors that all cases of a size share, 64-byte aligned. Pages that cannot be touched follow behind them, and a
/// pattern is before them (GuardedArray).
struct BenchTensors {
  explicit BenchTensors(std::int64_t elements);

  /// Noise in [-1, 1).
  std::span<float> from;
  /// What cases write.
  std::span<float> to;
  /// The end of the mask, 64-byte aligned: a case uses as much before it as it needs.
  std::byte* mask_end = nullptr;

  /// "wrote 4 bytes after the end of the result", "x is changed"; empty when all is well.
  std::string damage() const;

 private:
  GuardedArray from_, to_, mask_;
};

/// A case and the kernel that does it, null for the limits. Works with thread_count() threads.
class TimedCase {
 public:
  /// `tensors` must outlive it.
  TimedCase(BenchTensors& tensors, const BenchCase& what, const NamedKernel* kernel);

  /// Throws Error with text() for an exception of the kernel.
  void run();
  /// The threads that share its tensor: one where it is small. All of them for a kernel of others that shares it by
  /// itself, since nobody knows.
  int threads_used() const;
  /// Throws Error unless run() gives the reference's bits, and its sums within rounding, and writes nothing else. The
  /// error, or the note of a crash, has text() and `when`.
  void verify(const std::string& when = "");

  const BenchCase& what() const { return what_; }
  const NamedKernel* kernel() const { return kernel_; }
  /// "kernel k: forward per tensor, 8 bits, 10 elements, 2 threads"
  std::string text() const;

 private:
  std::int64_t piece_unit() const;
  std::int64_t piece_count() const;
  std::size_t mask_bytes() const;
  void run_operation();
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
  /// Whether a call of the kernel left a thread's floating-point switches changed.
  mutable std::atomic<bool> changed_control_ = false;
  std::vector<quantize::Affine<float>> grids_;
  std::vector<fake_quant_grid> plugin_grids_, observed_;
  /// The mask of a case of backward alone: each kernel has a layout of its own.
  std::optional<GuardedArray> own_mask_memory_;
  std::byte* own_mask_ = nullptr;
  std::vector<fake_quant_sums> sums_, piece_sums_;
  std::vector<float> low_, high_, piece_low_, piece_high_;
};

}  // namespace miniqat::bench
