#include "cli/bench_machine.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>

#include "core/error.h"
#include "core/kernels/instruction_set.h"
#include "core/parallel.h"

namespace miniqat::cli {
namespace {

/// As Linux has it: x86-64 writes "model name", other architectures write other things or nothing.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "unknown CPU";
}

}  // namespace

Machine this_machine() {
  const dnnl_version_t* onednn = dnnl_version();
  Machine machine{.cpu = cpu_name(),
                  .cores = available_cores(),
                  .instruction_set = std::string(name_of(instruction_set())),
                  .onednn = concat(onednn->major, ".", onednn->minor, ".", onednn->patch),
                  .threads = thread_count()};
  if (double load = 0; getloadavg(&load, 1) == 1) machine.load = load;
  return machine;
}

std::string Machine::text() const {
  char load_text[64] = "load unknown";
  if (load >= 0) std::snprintf(load_text, sizeof load_text, "load %.2f%s", load, quiet() ? "" : " (not quiet)");
  return concat(cpu, ", ", cores, " cores, ", instruction_set, ", oneDNN ", onednn, "; ", threads,
                threads == 1 ? " thread, " : " threads, ", load_text, "\n");
}

nlohmann::ordered_json Machine::json() const {
  return {{"cpu", cpu},       {"cores", cores},     {"instruction_set", instruction_set},
          {"onednn", onednn}, {"threads", threads}, {"load", load},
          {"quiet", quiet()}};
}

}  // namespace miniqat::cli
