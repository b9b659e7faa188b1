#include "core/platform/working_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/text/error.h"

namespace miniqat {

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
