#include "core/platform/cpu_name.h"

#include <fstream>

namespace miniqat {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "unknown CPU";
}

}  // namespace miniqat
