#include "bench/measure/this_machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>

#include "bench/measure/rounds.h"
#include "core/kernels/instruction_set.h"
#include "core/platform/system.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/cpu_quota.h"
#include "core/threads/parallel.h"

namespace miniqat::bench {
namespace {

/// Asks the C library, which on some processors adds up the last caches of all groups of cores.
std::vector<Cache> caches_of_library() {
  std::vector<Cache> caches;
  const long sizes[] = {::sysconf(_SC_LEVEL1_DCACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE),
                        ::sysconf(_SC_LEVEL3_CACHE_SIZE)};
  for (int level = 1; level <= 3; ++level)
    if (sizes[level - 1] > 0) caches.push_back({level, sizes[level - 1]});
  return caches;
}

/// The first word of a file; "" if there is none.
std::string word_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::int64_t memory_of_machine() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

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

}  // namespace

std::vector<Cache> data_caches(const std::filesystem::path& folder) {
  std::vector<Cache> caches;
  for (int index = 0;; ++index) {
    const std::filesystem::path cache = folder / concat("index", index);
    // "32K", "320M".
    const std::string size = word_of(cache / "size"), level = word_of(cache / "level");
    if (size.empty() || level.empty()) break;
    if (word_of(cache / "type") == "Instruction") continue;
    const int shift = size.back() == 'M' ? 20 : size.back() == 'K' ? 10 : 0;
    if (const std::int64_t bytes = std::atoll(size.c_str()) << shift; bytes > 0)
      caches.push_back({std::atoi(level.c_str()), bytes});
  }
  if (caches.empty()) return caches_of_library();
  std::ranges::sort(caches, {}, &Cache::level);
  return caches;
}

std::string bytes_text(std::int64_t bytes) {
  return bytes >= 1 << 20 ? concat(bytes >> 20, " MiB") : concat(bytes >> 10, " KiB");
}

Machine this_machine() {
  const dnnl_version_t* onednn = dnnl_version();
  Machine machine{.cpu = cpu_name(),
                  .cores = available_cores(),
                  .cpu_quota = miniqat::cpu_quota(),
                  .instruction_set = std::string(name_of(isa_level())),
                  .onednn = concat(onednn->major, ".", onednn->minor, ".", onednn->patch),
                  .threads = thread_count(),
                  .caches = data_caches(),
                  .memory_bytes = memory_of_machine()};
  if (double load = 0; getloadavg(&load, 1) == 1) machine.load = load;
  return machine;
}

std::string Machine::text() const {
  const std::string load_text =
      load >= 0 ? formatted("load %.2f%s", load, quiet() ? "" : " (not quiet)") : "load unknown";
  std::string cache_text;
  for (const Cache& cache : caches) cache_text += concat(", L", cache.level, " ", bytes_text(cache.bytes));
  const std::string quota_text = cpu_quota ? formatted(" with a quota of %.1f", *cpu_quota) : "";
  return concat(cpu, ", ", cores, " cores", quota_text, ", ", instruction_set, cache_text, ", oneDNN ", onednn, "; ",
                load_text, "\n");
}

nlohmann::ordered_json Machine::json() const {
  nlohmann::ordered_json sizes = nlohmann::ordered_json::array();
  for (const Cache& cache : caches) sizes.push_back({{"level", cache.level}, {"bytes", cache.bytes}});
  const nlohmann::ordered_json quota = cpu_quota ? nlohmann::ordered_json(*cpu_quota) : nlohmann::ordered_json(nullptr);
  return {{"cpu", cpu},       {"cores", cores},     {"cpu_quota", quota}, {"instruction_set", instruction_set},
          {"onednn", onednn}, {"threads", threads}, {"caches", sizes},    {"memory_bytes", memory_bytes},
          {"load", load},     {"quiet", quiet()}};
}

nlohmann::ordered_json build_json() {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
#if defined(__clang__)
  constexpr const char* kCompiler = "clang " __clang_version__;
#else
  constexpr const char* kCompiler = "g++ " __VERSION__;
#endif
  return {{"version", MINIQAT_VERSION},
          {"commit", commit_of_build()},
          {"date", date},
          {"compiler", kCompiler},
          {"flags", MINIQAT_COMPILER_FLAGS}};
}

std::string version_text(const std::string& version, const std::string& commit) {
  return commit.empty() ? version : concat(version, " (", commit, ")");
}

std::string build_text() {
  const nlohmann::ordered_json build = build_json();
  const auto text = [&](const char* key) { return build[key].get<std::string>(); };
  return concat("miniqat ", version_text(text("version"), text("commit")), ", ", text("date"), ", ", text("compiler"),
                "\n");
}

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
    found.push_back(formatted("others used %.1f cores", others));
  if (switches > kSwitches + 5 / std::max(seconds, 1e-3))
    found.push_back(formatted("we were interrupted %.0f times a second", switches));
  if (drift > kRepeatTolerance) found.push_back(formatted("memcpy's speed drifted by %.0f%%", 100 * drift));
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
