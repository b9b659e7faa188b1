#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "benchmarks/suite/registry/operation.h"

namespace miniqat::benchmarks {

/// The speed of memcpy where tensors of a size are.
struct CopySpeed {
  /// "L1", "L2", "L3", "memory".
  std::string place;
  /// Of both tensors together.
  std::int64_t bytes = 0;
  /// Read and written.
  double bytes_per_second = 0;
};

/// The limits of this machine with thread_count() threads.
struct Roof {
  int threads = 1;
  /// Products and sums in registers, in our largest vectors.
  double operations_per_second = 0;
  double divisions_per_second = 0;
  std::vector<CopySpeed> copies;

  /// Two lines for people.
  std::string text() const;
  nlohmann::ordered_json json() const;
};

/// Takes a quarter of a second.
Roof measure_roof();

/// The least time of an operation, on as many elements as the copy and the reading pass took. It is the time of its
/// memory or of its arithmetic, whichever is longer: copied bytes at the copy's speed, bytes only read at that of
/// reading, arithmetic at the roof's. An operation in place can take less than that: it fetches no line only to write
/// it.
double least_seconds(const OperationCost& cost, std::int64_t elements, double copy_seconds, double read_seconds,
                     const Roof& roof);

}  // namespace miniqat::benchmarks
