#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/kernels/fake_quant_plugin.h"

namespace miniqat::bench {

/// An operation that `miniqat bench` times on a tensor.
enum class Operation {
  /// The limits: a copy, and a pass that only reads.
  kMemcpy,
  kRead,
  kForward,
  kForwardInPlace,
  /// Forward, which notes where the gradient passes.
  kForwardMask,
  /// Minima and maxima, the grid of that range, then forward with it.
  kObserveForward,
  /// Follows the mask; knows no channels.
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
  /// The divisions among the operations: a processor has fewer units for them.
  double divisions = 0;

  double bytes() const { return copied_bytes + read_bytes; }
};

struct OperationTraits {
  Operation operation;
  /// Whether its grids matter: else it is neither per channel nor of any width.
  bool has_grid;
  /// The name in `--kernel` and in JSON.
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

/// One line of the table: an operation on a tensor.
struct BenchCase {
  Operation operation = Operation::kForward;
  int bits = 8;
  /// 1: per tensor.
  std::int64_t channels = 1;
  std::int64_t elements = 0;

  bool has_grid() const { return traits_of(operation).has_grid; }
  /// "per tensor", "per channel"; "" where there is no grid.
  std::string layout() const;
  /// "forward per channel, 8 bits, 1000 elements".
  std::string text() const;
};

/// Which cases of a size are wanted.
struct CaseChoice {
  std::vector<Operation> operations;
  std::vector<int> bits = {8};
  /// 1 for per tensor, and other numbers.
  std::vector<std::int64_t> channels = {1, 64};
};

/// The limits first, then each operation per tensor, then each one per channel; one without a grid comes once.
std::vector<BenchCase> cases_of(const CaseChoice& choice, std::int64_t elements);

}  // namespace miniqat::bench
