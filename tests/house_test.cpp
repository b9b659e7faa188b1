// The house rules that a compiler does not check: which folder may include which, and how long a file may get.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core", {"core"}},
    {"layers", {"core", "layers"}},
    {"integer", {"core", "layers", "integer"}},
    {"quantize", {"core", "layers", "integer", "quantize"}},
    {"exporters", {"core", "layers", "integer", "exporters"}},
    {"optim", {"core", "optim"}},
    {"datasets", {"core", "datasets"}},
    {"models", {"core", "layers", "models"}},
    {"cli", {"core", "layers", "integer", "quantize", "exporters", "optim", "datasets", "models", "cli"}},
};

std::vector<fs::path> sources(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(MINIQAT_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") files.push_back(entry.path());
  return files;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string without_indent(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? "" : line.substr(first);
}

/// The folder of ours that `#include "folder/file.h"` names; "" for any other line.
std::string included_folder(const std::string& line) {
  const std::string head = "#include \"";
  if (!line.starts_with(head)) return "";
  const std::size_t slash = line.find('/');
  return slash == std::string::npos ? line.substr(head.size()) : line.substr(head.size(), slash - head.size());
}

TEST(House, DependenciesPointOneWay) {
  for (const auto& [folder, allowed] : kMayInclude) {
    const std::vector<fs::path> files = sources(folder);
    ASSERT_FALSE(files.empty()) << folder;
    for (const fs::path& file : files) {
      for (const std::string& line : lines_of(file)) {
        const std::string included = included_folder(line);
        EXPECT_TRUE(included.empty() || allowed.contains(included)) << file << " must not have " << line;
      }
    }
  }
}

TEST(House, FilesStaySmall) {
  constexpr std::size_t kLongest = 400;
  for (const auto& [folder, allowed] : kMayInclude)
    for (const fs::path& file : sources(folder)) EXPECT_LE(lines_of(file).size(), kLongest) << file;
}

/// What the README shows of C++ is what is built and run.
TEST(House, TheReadmesProgramIsTheExample) {
  const fs::path root = MINIQAT_SOURCE_DIR;
  std::vector<std::string> example;
  for (const std::string& line : lines_of(root / "examples/train_lenet.cpp")) example.push_back(without_indent(line));
  std::size_t shown = 0;
  auto place = example.begin();
  bool inside = false;
  for (const std::string& line : lines_of(root / "README.md")) {
    if (line.starts_with("```")) {
      inside = line == "```cpp";
      continue;
    }
    if (!inside || line.empty()) continue;
    const auto found = std::find(place, example.end(), without_indent(line));
    ASSERT_TRUE(found != example.end()) << "not in the example, or in another place: " << line;
    place = found + 1;
    ++shown;
  }
  EXPECT_GT(shown, 10u);
}

}  // namespace
