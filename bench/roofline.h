#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/measure/this_machine.h"
#include "bench/operation.h"
#include "core/engine/profile.h"

namespace miniqat::bench {

/// The speed of memcpy where tensors of a size are.
struct CopySpeed {
  /// "L1", "L2", "L3", "memory".
  std::string place;
  /// The bytes of both tensors together.
  std::int64_t bytes = 0;
  /// Read and written.
  double bytes_per_second = 0;
};

/// Bytes of the copy that measures memory, of both tensors together: at least 256 MiB and twice the last cache, but no
/// more than half of the machine's memory.
std::int64_t memory_copy_bytes(const Machine& machine);

/// A line for people if x and y of so many bytes together are less than twice the last cache, which then holds a part
/// of them: "... are not out of cache: L3 has 320 MiB". Else empty.
std::string cache_note(const Machine& machine, const std::string& what, std::int64_t bytes);

/// Arithmetic in registers, in our largest vectors, in a second.
struct PeakRates {
  /// Products and sums.
  double operations = 0;
  double divisions = 0;
};

/// The limits of this machine with thread_count() threads.
struct Roof {
  int threads = 1;
  PeakRates all_threads, one_thread;
  std::vector<CopySpeed> copies;
  /// The largest cache of one core alone.
  std::int64_t own_cache_bytes = 0;
  Disturbance disturbance;
  /// cache_note() of the copy that stands for memory.
  std::string note;

  /// The peak of `some` threads: no more than all have, since two may share a core.
  PeakRates peak_of(int some) const;
  bool is_quiet() const { return disturbance.reasons().empty(); }
  /// Lines for people.
  std::string text() const;
  nlohmann::ordered_json json() const;
};

/// Takes some tenths of a second. Copies go up to the least cache that holds `largest_bytes`, or to memory if none
/// does: that copy fills up to a gigabyte, which may take seconds.
Roof measure_roof(std::int64_t largest_bytes);

/// What a profile is held against, with thread_count() threads: oneDNN's matrix product of two [1024, 1024], and a copy
/// of 128 MiB, the best of some rounds each. Takes half a second and 256 MiB.
MachineRates measure_rates();

/// Reads n numbers and does next to nothing with them.
void read_floats(const float* x, std::int64_t n);

/// What a copy and a reading pass took on the same elements, and the threads that shared them.
struct LimitTimes {
  double copy_seconds = 0;
  double read_seconds = 0;
  int threads = 1;
};

/// The least time of an operation on `elements` that `threads` share. It is the time of its memory or of its
/// arithmetic, whichever is longer: copied bytes at the copy's speed, bytes only read at that of reading, arithmetic at
/// the roof's for these threads. If they are not as many as the limits had, the speed of memory counts in proportion
/// where each thread's part of x and y fits into a cache of its own; beyond, the cores share it. An operation in place
/// can take less than that: it fetches no line only to write it.
double least_seconds(const OperationCost& cost, std::int64_t elements, int threads, const LimitTimes& limits,
                     const Roof& roof);

}  // namespace miniqat::bench
