#include "tests/temp_dir.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace miniqat::testing {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "miniqat-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory: " + pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempDir::write(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

}  // namespace miniqat::testing
