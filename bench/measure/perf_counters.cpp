#include "bench/measure/perf_counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/text/error.h"

namespace miniqat::bench {
namespace {

int open_counter(const CountedEvent& event) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.number;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

/// "; kernel.perf_event_paranoid is 3", which is the usual reason.
std::string paranoia() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  return file >> level ? concat("; kernel.perf_event_paranoid is ", level) : "";
}

std::optional<double> count_of(int file) {
  struct {
    std::uint64_t value, enabled, running;
  } counted = {};
  if (::read(file, &counted, sizeof counted) != static_cast<ssize_t>(sizeof counted)) return std::nullopt;
  if (counted.running == 0) return 0.0;
  return static_cast<double>(counted.value) * static_cast<double>(counted.enabled) /
         static_cast<double>(counted.running);
}

}  // namespace

PerfCounters::PerfCounters()
    : PerfCounters({PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}, {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}) {
}

PerfCounters::PerfCounters(CountedEvent first, CountedEvent second) {
  files_[0] = open_counter(first);
  const int error = files_[0] < 0 ? errno : 0;
  files_[1] = error == 0 ? open_counter(second) : -1;
  const int second_error = error == 0 && files_[1] < 0 ? errno : error;
  if (second_error != 0)
    fault_ = concat("perf_event_open: ", std::strerror(second_error),
                    second_error == ENOENT ? " (this processor or virtual machine has no such counter)" : paranoia());
}

PerfCounters::~PerfCounters() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

std::optional<PerfCounters::Counts> PerfCounters::read() const {
  if (!fault_.empty()) return std::nullopt;
  const std::optional<double> first = count_of(files_[0]), second = count_of(files_[1]);
  if (!first || !second) return std::nullopt;
  return Counts{*first, *second};
}

}  // namespace miniqat::bench
