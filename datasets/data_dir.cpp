#include "datasets/data_dir.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::datasets {
namespace {

constexpr const char* kVariable = "MINIQAT_DATA_DIR";
constexpr std::string_view kHowToGive = "give the directory with --data-dir DIR or in the environment variable ";

/// Beyond the directory, where there is more to say: in a clone, since an installation does not have the script.
std::string how_to_get(const std::string& name) {
  std::error_code ignored;
  const bool has_script = name == "mnist" && std::filesystem::exists("scripts/get-data", ignored);
  return has_script ? "; scripts/get-data mnist DIR downloads it" : "";
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

namespace fs = std::filesystem;

std::string lower_ending(const fs::path& path) { return lower_case(path.extension().string()); }

std::string dead_link_text(const fs::path& link) {
  std::error_code failure;
  return concat("is a link to ", quote(fs::read_symlink(link, failure).string()), ", which is not there");
}

void require_no_dead_links(const fs::path& folder) {
  constexpr std::array<std::string_view, 4> kOfData = {"", ".gz", ".npy", ".csv"};
  std::vector<fs::path> dead;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::error_code failure;
    if (entry.path().filename().string().starts_with('.')) continue;
    if (entry.status(failure).type() != fs::file_type::not_found) continue;
    if (std::ranges::find(kOfData, entry.path().extension().string()) != kOfData.end()) dead.push_back(entry.path());
  }
  if (dead.empty()) return;
  std::ranges::sort(dead);
  fail(dead.front(), " ", dead_link_text(dead.front()),
       dead.size() == 1 ? "" : concat(" (", dead.size() - 1, " more in this folder)"),
       "; a class or a part may be missing: put back what it leads to, or remove the link");
}

void require_data_file(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  if (type == fs::file_type::regular) return;
  if (type == fs::file_type::not_found && fs::is_symlink(path, failure)) fail(path, " ", dead_link_text(path));
  fail(path, type == fs::file_type::not_found ? " is not there" : " is no file: data cannot be read from it");
}

}  // namespace miniqat::datasets
