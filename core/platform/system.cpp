#include "core/platform/system.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "core/text/error.h"

namespace miniqat {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "unknown CPU";
}

WorkingDirectory::WorkingDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "miniqat-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) fail(name, ": cannot be made: ", std::strerror(errno));
  path_ = name;
}

WorkingDirectory::~WorkingDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace miniqat
