#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "benchmarks/kernels/fake_quant_plugin.h"

namespace miniqat::benchmarks {

/// An operation that `miniqat bench` times on a tensor.
enum class Operation {
  /// The limits: a copy, and a pass that only reads.
  kMemcpy,
  kRead,
  kForward,
  kForwardInPlace,
  /// Also notes where the gradient passes.
  kForwardMask,
  /// Minima and maxima, the grid of that range, then forward with it.
  kObserveForward,
  /// By the mask; knows no channels.
  kBackward,
  /// From x, with the sums that both ends of a learned range need; dx in place of dy.
  kBackwardLearned,
};

/// The least work of an operation, an element.
struct OperationCost {
  /// Read in one place and written in another (or the same).
  double copied_bytes = 0;
  /// Read beside that.
  double read_bytes = 0;
  /// Sums, products, comparisons, minima, roundings and divisions in float32.
  double operations = 0;
  /// Those of them that are divisions, for which a processor has fewer units.
  double divisions = 0;

  double bytes() const { return copied_bytes + read_bytes; }
};

struct OperationTraits {
  Operation operation;
  /// Whether its grids matter: else it is neither per channel nor of any width.
  bool has_grid;
  /// As in `--kernel` and in JSON.
  std::string_view name;
  OperationCost cost;
  /// For `--help`.
  std::string_view help;
};

/// All, in the order of the table; the limits first.
std::span<const OperationTraits> operations();
const OperationTraits& traits_of(Operation operation);
std::optional<Operation> find_operation(std::string_view name);
inline bool is_limit(Operation operation) { return operation <= Operation::kRead; }

/// Whether the kernel has the functions that the operation takes.
bool can_do(const fake_quant_kernel& kernel, Operation operation);

}  // namespace miniqat::benchmarks
