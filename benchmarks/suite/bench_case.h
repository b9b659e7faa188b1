#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/suite/registry/operation.h"

namespace miniqat::benchmarks {

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

}  // namespace miniqat::benchmarks
