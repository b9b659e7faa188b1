#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/source_dir.h"

// Files of the repository and their lines, for the tests of the house rules.

namespace miniqat::house_test {

/// The files in a top folder, and all below it, that `is_wanted` takes; none of node_modules, which npm fills.
template <class Predicate>
std::vector<std::filesystem::path> files_of(const std::string& folder, Predicate is_wanted) {
  std::vector<std::filesystem::path> files;
  std::filesystem::recursive_directory_iterator entry(source_dir() / folder);
  for (; entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    if (entry->path().filename() == "node_modules") entry.disable_recursion_pending();
    if (entry->is_regular_file() && is_wanted(entry->path())) files.push_back(entry->path());
  }
  return files;
}

/// Files of C++.
inline std::vector<std::filesystem::path> sources(const std::string& folder) {
  return files_of(
      folder, [](const std::filesystem::path& file) { return file.extension() == ".h" || file.extension() == ".cpp"; });
}

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Files of other languages: Python, JavaScript, and scripts whose first line names their interpreter.
inline std::vector<std::filesystem::path> scripts(const std::string& folder) {
  static const std::set<std::string> endings = {".css", ".js", ".mjs", ".py", ".pyi"};
  return files_of(folder, [](const std::filesystem::path& file) {
    if (file.has_extension()) return endings.contains(file.extension().string());
    const std::vector<std::string> lines = lines_of(file);
    return !lines.empty() && lines[0].starts_with("#!");
  });
}

/// The folders at the top of the repository.
inline std::set<std::string> top_entries() {
  std::set<std::string> folders;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(source_dir()))
    if (entry.is_directory()) folders.insert(entry.path().filename());
  folders.erase("build");
  return folders;
}

/// All files of C++.
inline std::vector<std::filesystem::path> all_sources() {
  std::vector<std::filesystem::path> files;
  for (const std::string& top : top_entries())
    if (!top.starts_with('.')) std::ranges::copy(sources(top), std::back_inserter(files));
  return files;
}

/// The headers of ours that a file includes, and those that these include.
inline std::set<std::filesystem::path> headers_behind(const std::filesystem::path& file) {
  const std::string head = "#include \"";
  std::set<std::filesystem::path> found;
  std::vector<std::filesystem::path> pending = {file};
  while (!pending.empty()) {
    const std::filesystem::path next = pending.back();
    pending.pop_back();
    for (const std::string& line : lines_of(next)) {
      if (!line.starts_with(head)) continue;
      const std::string name = line.substr(head.size(), line.rfind('"') - head.size());
      const std::filesystem::path header = source_dir() / name;
      if (std::filesystem::exists(header) && found.insert(header).second) pending.push_back(header);
    }
  }
  return found;
}

inline std::string without_indent(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? "" : line.substr(first);
}

/// Where a function begins, where its brace opens, and where that closes.
struct FunctionLines {
  std::size_t begin, brace, end;
};

/// Goes by clang-format's layout: a function begins at the margin, in a class indented by two, and ends with a brace
/// that is as deep. Heads wrap, and constructors have initializers. Functions on one line are left out.
inline std::vector<FunctionLines> functions_of(const std::vector<std::string>& lines) {
  static const std::regex opening(".*\\)( const| override| noexcept| final)*( -> .*)? \\{");
  std::vector<FunctionLines> found;
  for (std::size_t brace = 0; brace < lines.size(); ++brace) {
    if (!lines[brace].ends_with("{") || !std::regex_match(lines[brace], opening)) continue;
    std::size_t begin = brace + 1;
    bool goes_on = true;
    for (std::ptrdiff_t open = 0; goes_on && begin > 0;) {
      --begin;
      open += std::ranges::count(lines[begin], ')') - std::ranges::count(lines[begin], '(');
      goes_on = open > 0 || without_indent(lines[begin]).starts_with(":");
    }
    const std::size_t indent = lines[begin].find_first_not_of(' ');
    if (indent > 2) continue;
    std::size_t end = brace + 1;
    while (end < lines.size() && !lines[end].starts_with(std::string(indent, ' ') + "}")) ++end;
    found.push_back({begin, brace, end});
  }
  return found;
}

}  // namespace miniqat::house_test
