#include "datasets/data_dir.h"

#include <cstdlib>

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::datasets {

namespace {

constexpr const char* kVariable = "MINIQAT_DATA_DIR";
constexpr std::string_view kHowToGive = "give the directory with --data-dir DIR or in the environment variable ";

/// Beyond the directory, where there is more to say.
std::string how_to_get(const std::string& name) {
  return name == "mnist" ? "; scripts/get-data mnist DIR downloads it" : "";
}

bool directory_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

std::filesystem::path given_data_dir(const std::filesystem::path& data_dir) {
  const char* value = std::getenv(kVariable);
  return data_dir.empty() && value != nullptr ? std::filesystem::path(value) : data_dir;
}

std::filesystem::path resolve_data_dir(const std::string& name, const std::filesystem::path& data_dir,
                                       std::string_view files) {
  const std::filesystem::path directory = given_data_dir(data_dir);
  if (directory.empty())
    fail("data set ", name, " is read from files (", files, "); ", kHowToGive, kVariable, how_to_get(name));
  if (!directory_exists(directory))
    fail("data set ", name, ": ", directory, " is not a directory that holds ", files, "; ", kHowToGive, kVariable,
         how_to_get(name));
  return directory_exists(directory / name) ? directory / name : directory;
}

std::filesystem::path find_data_file(const std::string& name, const std::filesystem::path& directory,
                                     const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    std::error_code ignored;
    std::filesystem::path path = directory / candidate;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  fail("data set ", name, ": ", directory, " has none of ", joined(candidates), "; ", kHowToGive, kVariable,
       how_to_get(name));
}

}  // namespace miniqat::datasets
