#include "bench/measure/quietness.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "bench/measure/rounds.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"

namespace miniqat::bench {
namespace {

double seconds_of_timeval(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double seconds_of_processor(const rusage& usage) {
  return seconds_of_timeval(usage.ru_utime) + seconds_of_timeval(usage.ru_stime);
}

/// The work of all cores, from the first line of /proc/stat: "cpu user nice system idle iowait irq softirq steal ...".
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft = 0, stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft >> stolen)) return -1;
  return (user + nice + system + interrupts + soft + stolen) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string text_of(const char* format, double value) {
  char text[96];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::vector<std::string> Disturbance::reasons() const {
  // The clock of /proc/stat ticks a hundred times a second on each core.
  constexpr double kTick = 0.03;
  // A desktop at rest has a few hundredths of a core and some ten switches.
  constexpr double kOthers = 0.1, kSwitches = 50;
  // Others on cores that we leave idle take neither time nor a core from us, but share memory, caches and perhaps the
  // halves of cores. A process beside one thread is an eighth of the idle cores from nine cores on; of two cores it is
  // all that is left.
  constexpr double kOfIdle = 1.0 / 8;
  std::vector<std::string> found;
  if (seconds > 0 && others > kOthers + kOfIdle * idle_cores + kTick / seconds)
    found.push_back(text_of("others used %.1f cores", others));
  if (switches > kSwitches + 5 / std::max(seconds, 1e-3))
    found.push_back(text_of("we were interrupted %.0f times a second", switches));
  if (drift > kRepeatTolerance) found.push_back(text_of("memcpy's speed drifted by %.0f%%", 100 * drift));
  return found;
}

nlohmann::ordered_json Disturbance::json() const {
  return {{"seconds", seconds},       {"others_cores", others},
          {"idle_cores", idle_cores}, {"involuntary_switches_per_second", switches},
          {"memcpy_drift", drift},    {"reasons", reasons()}};
}

QuietWatch::Sample QuietWatch::sample() {
  rusage usage = {}, of_children = {};
  ::getrusage(RUSAGE_SELF, &usage);
  ::getrusage(RUSAGE_CHILDREN, &of_children);
  return {std::chrono::steady_clock::now(), busy_seconds(),
          seconds_of_processor(usage) + seconds_of_processor(of_children), usage.ru_nivcsw};
}

QuietWatch::QuietWatch() : start_(sample()) {}

Disturbance QuietWatch::since() const {
  const Sample now = sample();
  Disturbance result;
  result.seconds = std::chrono::duration<double>(now.time - start_.time).count();
  // /proc/stat counts the whole machine, not only the cores that we may use.
  result.idle_cores = static_cast<int>(std::max<long>(0, ::sysconf(_SC_NPROCESSORS_ONLN) - thread_count()));
  if (result.seconds <= 0) return result;
  if (now.busy >= 0 && start_.busy >= 0)
    result.others = std::max(0.0, ((now.busy - start_.busy) - (now.own - start_.own)) / result.seconds);
  result.switches = static_cast<double>(now.switches - start_.switches) / result.seconds;
  return result;
}

}  // namespace miniqat::bench
