#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

// Files of the repository, for the tests of the house rules.

namespace miniqat::house_test {

/// Of a top folder and all below it.
inline std::vector<std::filesystem::path> sources(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(MINIQAT_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") files.push_back(entry.path());
  return files;
}

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

inline std::string without_indent(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? "" : line.substr(first);
}

/// The folders at the top of the repository.
inline std::set<std::string> top_entries() {
  std::set<std::string> folders;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(MINIQAT_SOURCE_DIR))
    if (entry.is_directory()) folders.insert(entry.path().filename());
  folders.erase("build");
  return folders;
}

}  // namespace miniqat::house_test
