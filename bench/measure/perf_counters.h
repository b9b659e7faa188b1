#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace miniqat::bench {

/// An event as <linux/perf_event.h> numbers it.
struct CountedEvent {
  std::uint32_t type = 0;
  std::uint64_t number = 0;
};

/// Counts two events of this process, also in threads that it starts later: so make one before any threads. If the
/// system does not allow that (containers, virtual machines, kernel.perf_event_paranoid), it counts nothing.
class PerfCounters {
 public:
  struct Counts {
    double instructions = 0;
    double cache_misses = 0;
  };

  /// Instructions and cache misses, in user code.
  PerfCounters();
  /// Other events in their place.
  PerfCounters(CountedEvent first, CountedEvent second);
  ~PerfCounters();
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  /// Why there are none, for one line; empty when there are.
  const std::string& fault() const { return fault_; }
  /// From the beginning on; nothing if there are none. Where the processor counted only part of the time, in
  /// proportion.
  std::optional<Counts> read() const;

 private:
  std::array<int, 2> files_ = {-1, -1};
  std::string fault_;
};

}  // namespace miniqat::bench
